"""Lists in the submit form: a line an entry, and what no line can say stays in the YAML."""

import yaml

from jobs.submit import forms
from jobs.submit.draft import Draft
from jobs.submit.fields import VGPU
from tests.jobs.drafts import edit

LISTED = """\
spec:
  volumes:
    - {mountPath: /data, volumeClaimName: corpus}   # read only
    - mountPath: /scratch
      volumeClaim: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
    - mountPath: /odd
      volumeClaim: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, storageClassName: fast}
  tasks:
    - name: master
      replicas: 1
    - name: worker
      replicas: 1
      dependsOn: {name: [master], iteration: any}
      template:
        metadata: {annotations: {a/b: c}}
        spec:
          nodeSelector: {nvidia.com/gpu.product: H100, disk: ssd}
          tolerations:
            - {key: gpu, operator: Exists, effect: NoSchedule}
            - {key: team, value: vision}
            - {operator: Exists, effect: NoExecute, tolerationSeconds: 30}
          volumes:
            - {name: shm, emptyDir: {medium: Memory, sizeLimit: 8Gi}}
            - {name: keys, secret: {secretName: keys}}
          containers:
            - name: train
              image: busybox
              env:
                - {name: LR, value: "0.1"}   # tuned
                - name: TOKEN
                  valueFrom: {secretKeyRef: {name: keys, key: token}}
                - {name: EPOCHS, value: "3"}
              resources:
                limits: {nvidia.com/gpu: 2}
                requests: {nvidia.com/gpu: 2}
              volumeMounts:
                - {name: keys, mountPath: /keys}
                - {name: shm, mountPath: /dev/shm}
"""


def listed(**changes):
    draft = edit(LISTED, **{f"tasks__1__{name}" if name != "volumes" else name: text for name, text in changes.items()})
    spec = yaml.safe_load(draft.text)["spec"]
    return draft, spec, spec["tasks"][1]["template"]["spec"]


def test_lists_are_shown_a_line_an_entry_and_what_no_line_can_say_is_left_out():
    shown = forms.read(Draft(LISTED))
    assert shown["volumes"] == "corpus:/data\n+10Gi:/scratch"
    assert shown["tasks.1.env"] == "LR=0.1\nEPOCHS=3"
    assert shown["tasks.1.selector"] == "disk=ssd"
    assert shown["tasks.1.tolerations"] == "gpu:NoSchedule\nteam=vision"
    assert shown["tasks.1.depends_on"] == "master"
    assert shown["tasks.1.shared_memory"] == "8Gi"
    assert shown["tasks.1.model"] == "H100"
    assert edit(LISTED).text == LISTED


def test_a_variable_is_changed_in_its_place_and_those_from_secrets_stay():
    draft, _spec, pod = listed(env="LR=0.2\nSEED=7")
    assert pod["containers"][0]["env"] == [
        {"name": "LR", "value": "0.2"},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
        {"name": "SEED", "value": "7"},
    ]
    assert "# tuned" in draft.text


def test_selector_tolerations_and_dependencies_change_line_by_line():
    _draft, spec, pod = listed(selector="disk=nvme\nzone=a", tolerations="team=vision\nspot", depends_on="master, other")
    assert pod["nodeSelector"] == {"nvidia.com/gpu.product": "H100", "disk": "nvme", "zone": "a"}
    assert pod["tolerations"] == [
        {"key": "team", "value": "vision"},
        {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        {"key": "spot", "operator": "Exists"},
    ]
    assert spec["tasks"][1]["dependsOn"] == {"name": ["master", "other"], "iteration": "any"}


def test_volumes_name_a_claim_or_ask_for_a_new_one_and_others_stay():
    _draft, spec, _pod = listed(volumes="corpus:/data\n+20Gi:/new")
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}
    assert [each["mountPath"] for each in spec["volumes"]] == ["/data", "/odd", "/new"]
    assert spec["volumes"][2]["volumeClaim"] == claim


def test_shared_memory_comes_and_goes_with_its_mount():
    assert listed(shared_memory="64Gi")[2]["volumes"][0]["emptyDir"]["sizeLimit"] == "64Gi"
    draft, _spec, pod = listed(shared_memory="")
    assert [each["name"] for each in pod["volumes"]] == ["keys"]
    assert [each["name"] for each in pod["containers"][0]["volumeMounts"]] == ["keys"]
    again = edit(draft.text, tasks__1__shared_memory="1Gi")
    assert forms.read(again)["tasks.1.shared_memory"] == "1Gi"


def test_the_kind_of_gpu_renames_the_amount_and_takes_parts_of_cards_with_it():
    _draft, _spec, pod = listed(gpu_kind=VGPU, vgpu_memory="4096", vgpu_cores="25")
    asked = {VGPU: 2, "volcano.sh/vgpu-memory": 4096, "volcano.sh/vgpu-cores": 25}
    assert pod["containers"][0]["resources"] == {"limits": asked, "requests": asked}
    draft = edit(_draft.text, tasks__1__gpu_kind="")
    assert yaml.safe_load(draft.text) == yaml.safe_load(LISTED)


def test_a_task_that_ends_the_job_has_a_policy_of_its_own():
    _draft, spec, _pod = listed(on_completion="CompleteJob")
    assert spec["tasks"][1]["policies"] == [{"event": "TaskCompleted", "action": "CompleteJob"}]
