"""Pods as real processes: what they see, how they end, and that nothing of them stays."""

import base64
import os
import signal
import subprocess

import pytest

from cluster.errors import Unavailable
from cluster.kinds import CONFIG_MAP, EVENT, POD, SECRET, SERVICE
from cluster.objects import condition
from tests.cluster.processes.conftest import terminated


def running(mark):
    """How many processes of this machine have a mark in their command line."""
    found = subprocess.run(["pgrep", "-fc", mark], capture_output=True, text=True).stdout
    return int(found or 0)


def test_exit_codes_and_streams_are_kept(house):
    house.pod(script="echo out; echo err >&2; exit 3")
    pod = house.ended()
    assert pod["status"]["phase"] == "Failed"
    assert (terminated(pod)["exitCode"], terminated(pod)["reason"]) == (3, "Error")
    assert sorted(house.printed()) == ["err", "out"]
    assert condition(pod, "Ready")["status"] == "False"


def test_a_program_that_a_signal_ends_has_128_and_its_number(house):
    house.pod(script="kill -SEGV $$$$")
    ended = terminated(house.ended())
    assert (ended["exitCode"], ended["signal"]) == (139, 11)


def test_a_program_that_is_not_there_cannot_start_and_says_so(house):
    house.pod(command=["no-such-program"])
    ended = terminated(house.ended())
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert ended["message"] == "no-such-program: No such file or directory"


def test_a_container_without_a_command_is_refused_since_images_are_not_used(house):
    house.pod(spec=None, containers=[{"name": "main", "image": "busybox"}])
    pod = house.ended()
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "CannotRun")
    assert "image is not used" in pod["status"]["message"]


def test_the_environment_is_the_pods_own(house, monkeypatch):
    monkeypatch.setenv("BASALT_SECRET_KEY", "not for pods")
    house.cluster.create(CONFIG_MAP, {"metadata": {"name": "c"}, "data": {"key": "from map", "two": "2"}})
    env = [
        {"name": "PLAIN", "value": "$(two) is $$(two) and $(unknown)"},
        {"name": "FROM_MAP", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "key"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    house.pod(script="env", container={"env": env, "envFrom": [{"configMapRef": {"name": "c"}}]})
    house.ended()
    values = dict(line.split("=", 1) for line in house.printed() if "=" in line)
    assert values["PLAIN"] == "2 is $(two) and $(unknown)"
    assert values["FROM_MAP"] == "from map"
    assert values["IP"] == house.get()["status"]["podIP"]
    assert values["IP"].startswith("127.")
    assert "BASALT_SECRET_KEY" not in values


def test_each_container_sees_the_gpus_that_it_was_given(house):
    asks = lambda count: {"resources": {"limits": {"nvidia.com/gpu": str(count)}}}  # noqa: E731
    words = ["sh", "-c", "echo gpus=$CUDA_VISIBLE_DEVICES"]
    containers = [{"name": name, "command": words} | asks(count) for name, count in (("a", 2), ("b", 1), ("none", 0))]
    house.pod(containers=containers, annotations={"basalt.dev/gpu-indices": "1,4,6"})
    house.ended()
    assert [house.printed(container=name) for name in ("a", "b", "none")] == [["gpus=1,4"], ["gpus=6"], ["gpus="]]


def test_volumes_are_mounted_where_the_pod_says(moved_house):
    house = moved_house
    house.cluster.create(CONFIG_MAP, {"metadata": {"name": "c"}, "data": {"a.txt": "from map"}})
    secret = base64.b64encode(b"k3y-of-this-test").decode()
    house.cluster.create(SECRET, {"metadata": {"name": "s"}, "data": {"id": secret, "other": secret}})
    volumes = [
        {"name": "c", "configMap": {"name": "c"}},
        {"name": "s", "secret": {"secretName": "s", "items": [{"key": "id", "path": "in/key"}], "defaultMode": 0o400}},
        {"name": "e", "emptyDir": {}},
        {"name": "d", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    mounts = [
        {"name": "c", "mountPath": "/etc/volcano"},
        {"name": "c", "mountPath": "/data/one.txt", "subPath": "a.txt"},
        {"name": "s", "mountPath": "/root/.ssh"},
        {"name": "e", "mountPath": "/scratch"},
        {"name": "d", "mountPath": "/podinfo"},
    ]
    key = "stat -c %a /root/.ssh/in/key; ls /root/.ssh; wc -c < /root/.ssh/in/key"
    script = f"cat /etc/volcano/a.txt /data/one.txt /podinfo/name; {key}"
    again = {"name": "second", "command": ["sh", "-c", "cat /shared/x"], "volumeMounts": [{"name": "e", "mountPath": "/shared"}]}
    writer = {"name": "writer", "command": ["sh", "-c", "echo written > /scratch/x"], "volumeMounts": [mounts[3]]}
    house.pod(
        initContainers=[writer],
        containers=[{"name": "main", "command": ["sh", "-c", script], "volumeMounts": mounts}, again],
        volumes=volumes,
    )
    assert house.ended()["status"]["phase"] == "Succeeded"
    assert house.printed() == ["from mapfrom mapp400", "in", "16"]
    assert house.printed(container="second") == ["written"]
    assert not os.path.exists("/etc/volcano")


def test_what_a_pod_writes_stays_in_the_pod(moved_house):
    house = moved_house
    house.pod(script="echo x > /etc/of-a-pod && cat /etc/of-a-pod; ls /proc | grep -c '^[0-9]'; ls " + str(house.folder))
    house.ended()
    assert house.printed()[0] == "x"
    assert int(house.printed()[1]) < 10, "processes of the machine are not seen"
    assert house.printed()[2:] in ([], [f"ls: cannot access '{house.folder}': No such file or directory"]), "data is hidden"
    assert not os.path.exists("/etc/of-a-pod")


def test_a_secret_is_masked_in_the_log(house):
    house.cluster.create(SECRET, {"metadata": {"name": "s"}, "stringData": {"token": "hunter2-hunter2"}})
    env = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}}]
    house.pod(script='printf "%s" "${TOKEN%r2}"; sleep 0.2; echo "r2 after"', container={"env": env})
    house.ended()
    assert house.printed() == ["****** after"]


def test_init_containers_come_in_order_and_a_failed_one_ends_the_pod(house):
    first = {"name": "first", "command": ["sh", "-c", "exit 0"]}
    second = {"name": "second", "command": ["sh", "-c", "exit 5"]}
    house.pod(script="echo never", initContainers=[first, second])
    pod = house.ended()
    codes = [status["state"]["terminated"]["exitCode"] for status in pod["status"]["initContainerStatuses"]]
    assert (pod["status"]["phase"], codes, house.printed()) == ("Failed", [0, 5], [])


def test_a_sidecar_runs_beside_the_others_and_ends_after_them(house):
    side = {
        "name": "side",
        "restartPolicy": "Always",
        "command": ["sh", "-c", "trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done"],
    }
    house.pod(script="sleep 0.3; echo main", initContainers=[side])
    assert house.ended()["status"]["phase"] == "Succeeded"
    assert house.printed() == ["main"]
    assert house.printed(container="side")[-1] == "bye"


def test_on_failure_starts_again_until_it_succeeds(moved_house):
    house = moved_house
    script = "test -e /scratch/again && exit 0; touch /scratch/again; exit 1"
    mounts = {"volumeMounts": [{"name": "e", "mountPath": "/scratch"}]}
    house.pod(script=script, container=mounts, volumes=[{"name": "e", "emptyDir": {}}], restartPolicy="OnFailure")
    pod = house.ended()
    status = pod["status"]["containerStatuses"][0]
    assert (pod["status"]["phase"], status["restartCount"]) == ("Succeeded", 1)
    assert status["lastState"]["terminated"]["exitCode"] == 1


def test_nothing_of_a_pod_outlives_its_program(house):
    house.pod(script="setsid sh -c 'trap \"\" TERM HUP; sleep 61817' & (setsid setsid sleep 61817 &); exec 1>&- 2>&-; exit 0")
    house.ended()
    assert running("sleep 61817") == 0


def test_deletion_asks_first_and_the_program_may_say_goodbye(house):
    house.pod(script="trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    house.prints("up")
    uid = house.get()["metadata"]["uid"]
    house.cluster.delete(POD, "p", "default")
    house.gone()
    records, _ = house.logs.stream(uid, "main", 0).read((0, 0), 1 << 20)
    assert [record.text for record in records][-1] == b"bye"


def test_who_does_not_listen_is_killed_after_the_grace(house):
    house.pod(script="trap '' TERM; echo up; while :; do sleep 61818; done")
    house.prints("up")
    house.cluster.delete(POD, "p", "default", grace_seconds=1)
    house.gone()
    assert running("sleep 61818") == 0


def test_a_pre_stop_hook_comes_before_the_signal(moved_house):
    house = moved_house
    mounts = {"volumeMounts": [{"name": "e", "mountPath": "/scratch"}]}
    hook = {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "echo hook > /scratch/said"]}}}}
    script = "trap 'cat /scratch/said; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    house.pod(script=script, container=mounts | hook, volumes=[{"name": "e", "emptyDir": {}}])
    house.prints("up")
    uid = house.get()["metadata"]["uid"]
    house.cluster.delete(POD, "p", "default")
    house.gone()
    records, _ = house.logs.stream(uid, "main", 0).read((0, 0), 1 << 20)
    assert records[-1].text == b"hook"


def test_the_termination_message_is_told(moved_house):
    moved_house.pod(script="echo why > /dev/termination-log; exit 1")
    assert terminated(moved_house.ended())["message"] == "why\n"


def test_without_a_message_the_log_may_speak(house):
    house.pod(script="echo first; echo last words; exit 1", container={"terminationMessagePolicy": "FallbackToLogsOnError"})
    assert terminated(house.ended())["message"] == "first\nlast words"


def test_a_store_that_is_away_for_a_moment_loses_no_pod(house, monkeypatch):
    order, away = house.kubelet.order, [Unavailable("away")]
    monkeypatch.setattr(house.kubelet, "order", lambda *asked: _refuse(away.pop()) if away else order(*asked))
    house.pod(script="true")
    with pytest.raises(Unavailable):
        house.kubelet.step()
    assert house.ended()["status"]["phase"] == "Succeeded"


def _refuse(error):
    raise error


def test_a_deadline_ends_the_pod(house):
    house.pod(script="sleep 60", activeDeadlineSeconds=1, terminationGracePeriodSeconds=1)
    pod = house.ended()
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")


def test_a_program_beyond_its_memory_is_killed_and_said_to_be(house):
    if "memory" in dict(house.kubelet.missing).get("limits", ""):
        pytest.skip("no control group limits memory here")
    house.pod(command=["python3", "-c", "bytearray(1 << 28)"], container={"resources": {"limits": {"memory": "64Mi"}}})
    ended = terminated(house.ended())
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


def test_a_fork_bomb_stays_within_its_limit(tmp_path, house):
    if "pids" in dict(house.kubelet.missing).get("limits", ""):
        pytest.skip("no control group limits processes here")
    bomb = (
        "import os, time\nn = 0\ntry:\n while True:\n  n += 1\n  if os.fork() == 0: time.sleep(60)\n"
        "except OSError: print(n, flush=True)"
    )
    house.pod(command=["python3", "-c", bomb])
    house.ended()
    assert house.printed() == ["1024"]


def test_a_missing_config_map_is_waited_for_and_told(house):
    house.pod(script="echo $X", container={"envFrom": [{"configMapRef": {"name": "late"}}]})
    waiting = house.until(lambda: (house.get().get("status") or {}).get("containerStatuses"))[0]["state"]["waiting"]
    assert waiting == {"reason": "CreateContainerConfigError", "message": "ConfigMap default/late is not there"}
    told = [event["message"] for event in house.cluster.list(EVENT).items if event["reason"] == "FailedToStart"]
    assert told == ["container main: ConfigMap default/late is not there"]
    house.cluster.create(CONFIG_MAP, {"metadata": {"name": "late"}, "data": {"X": "came"}})
    house.ended()
    assert house.printed() == ["came"]


def test_a_host_path_is_mounted_only_where_it_is_allowed(house):
    volume = {"name": "h", "hostPath": {"path": "/etc"}}
    house.pod(script="ls /host", container={"volumeMounts": [{"name": "h", "mountPath": "/host"}]}, volumes=[volume])
    pod = house.ended()
    assert pod["status"]["reason"] == "CannotRun"
    assert "BASALT_HOST_PATHS" in pod["status"]["message"]


def test_pods_find_each_other_by_name_and_use_the_same_port(moved_house):
    house = moved_house
    house.cluster.create(SERVICE, {"metadata": {"name": "job"}, "spec": {"clusterIP": "None", "selector": {}}})
    ip = {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    serve = (
        "import os, socket\ns = socket.create_server((os.environ['IP'], 47811))\n"
        "c, _ = s.accept()\nc.sendall(socket.gethostname().encode())\nc.close()"
    )
    for name in ("one", "two"):
        house.pod(name, command=["python3", "-c", serve], container={"env": [ip]}, hostname=name, subdomain="job")
    ask = (
        "import socket, time\n"
        "def ask(host):\n"
        " for _ in range(100):\n"
        "  try: return socket.create_connection((host, 47811)).recv(99).decode()\n"
        "  except OSError: time.sleep(0.1)\n"
        "print(ask('one.job'), ask('two.job.default.svc.cluster.local'))"
    )
    house.pod("asker", command=["python3", "-c", ask])
    house.ended("asker")
    assert house.printed("asker") == ["one two"]


def test_a_user_of_the_security_context_runs_the_program(moved_house, as_root):
    house = moved_house
    house.pod(script="id -u; id -g; touch mine && echo ok", securityContext={"runAsUser": 1234, "runAsGroup": 4321})
    house.ended()
    assert house.printed() == ["1234", "4321", "ok"]


def test_after_a_crash_the_left_overs_are_ended_and_pods_go_on_by_their_policies(house):
    script = "echo up; test -e again && exit 0; touch again; sleep 61819"
    house.pod("never", script)
    house.pod("again", script, restartPolicy="OnFailure")
    house.prints("up", "never")
    house.prints("up", "again")
    house.until(lambda: house.phase("never") == house.phase("again") == "Running")
    os.kill(house.kubelet._warden.pid, signal.SIGSTOP)  # it cannot even end itself
    house.begin()
    assert house.kubelet.left_over >= 1
    never, again = house.ended("never"), house.ended("again")
    assert (never["status"]["phase"], never["status"]["reason"]) == ("Failed", "KubeletRestarted")
    assert terminated(never)["exitCode"] == 137
    assert again["status"]["phase"] == "Succeeded"
    assert again["status"]["containerStatuses"][0]["restartCount"] == 1
    assert running("sleep 61819") == 0


def test_a_supervisor_that_is_ended_from_outside_takes_its_pod_along(house):
    house.pod(script="echo up; sleep 61820", restartPolicy="Never")
    house.prints("up")
    os.kill(house.kubelet._warden.pid, signal.SIGKILL)
    pod = house.ended()
    assert terminated(pod)["reason"] == "SupervisorLost"
    house.until(lambda: running("sleep 61820") == 0, 5)
    house.pod("next", "echo works")
    assert house.ended("next")["status"]["phase"] == "Succeeded"


def test_a_changed_secret_is_masked_before_the_pod_can_print_it(moved_house):
    house = moved_house
    house.cluster.create(SECRET, {"metadata": {"name": "s"}, "stringData": {"key": "old-secret-value"}})
    script = (
        "cat /s/key; echo; until grep -q new /s/key; do sleep 0.05; done; cat /s/key; cat /s/key > /dev/termination-log; exit 1"
    )
    volumes = [{"name": "s", "secret": {"secretName": "s"}}]
    house.pod(script=script, container={"volumeMounts": [{"name": "s", "mountPath": "/s"}]}, volumes=volumes)
    house.prints("******")
    new = base64.b64encode(b"new-secret-value").decode()
    house.cluster.patch(SECRET, "s", "default", {"data": {"key": new}, "stringData": None})
    assert terminated(house.ended())["message"] == "******"
    assert house.printed() == ["******", "******"]


def test_a_pod_that_makes_no_sense_ends_and_stops_no_other(house):
    house.pod("odd", containers=[{"name": "main", "command": ["true"], "env": "no list"}])
    house.pod("even", "echo fine")
    assert house.ended("odd")["status"]["reason"] == "KubeletError"
    assert house.ended("even")["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize("name", ["../../escaped", "..", "", "UP", "a/b", None])
def test_names_that_would_lead_out_of_the_folder_are_refused(house, name):
    house.pod("volume", "true", volumes=[{"name": name, "emptyDir": {}}])
    house.pod("container", containers=[{"name": name, "command": ["true"]}])
    house.pod("claim", "true", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name or "."}}])
    assert {house.ended(pod)["status"]["reason"] for pod in ("volume", "container", "claim")} == {"CannotRun"}


def test_a_pod_that_cannot_even_be_looked_at_is_refused(house):
    house.pod("odd", containers=["no mapping"])
    house.pod("even", "echo fine")
    assert house.ended("odd")["status"]["reason"] == "CannotRun"
    assert house.ended("even")["status"]["phase"] == "Succeeded"


def test_a_claim_keeps_what_one_pod_wrote_for_the_next(moved_house):
    house = moved_house
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "kept"}}]
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/data"}]}
    house.pod("first", "echo from first > /data/x", container=mounts, volumes=volumes)
    house.ended("first")
    house.cluster.delete(POD, "first", "default")
    house.gone("first")
    house.pod("second", "cat /data/x", container=mounts, volumes=volumes)
    house.ended("second")
    assert house.printed("second") == ["from first"]
