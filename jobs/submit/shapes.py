"""The common shapes of a job: small manifests to begin from, each complete, gang-scheduled and commented."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

_HEAD = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: {name}
  namespace: default
spec:
  queue: {queue}
  schedulerName: volcano
"""

_TASK = """\
    - name: {name}
      replicas: {replicas}
{policies}      template:
        metadata:
          annotations:
            sim.basalt.dev/duration: 60s   # simulated nodes only
        spec:
          restartPolicy: Never
          containers:
            - name: {name}
              image: {image}
{command}              resources:
                limits: {{cpu: {cpu}, memory: {memory}{gpu}}}
                requests: {{cpu: {cpu}, memory: {memory}{gpu}}}
"""

_COMPLETES = """\
      policies:
        - event: TaskCompleted   # ends the job
          action: CompleteJob
"""

_RESTARTS = """\
  maxRetry: 3
  policies:
    - event: PodEvicted
      action: RestartJob
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """A way to begin: its key in the URL, its name and one line that says when to take it, and its manifest."""

    key: str
    label: str | Promise
    hint: str | Promise
    body: str

    def manifest(self, name: str = "", queue: str = "default") -> str:
        """The shape's YAML with a job name and a queue filled in."""
        return _HEAD.format(name=name or f"{self.key}-1", queue=queue) + self.body


def _task(
    name: str, replicas: int, command: str, *, image: str, gpus: int = 0, cpu: int = 2, memory: str = "4Gi", ends: bool = False
) -> str:
    gpu = f", nvidia.com/gpu: {gpus}" if gpus else ""
    policies = _COMPLETES if ends else ""
    run = f"              command: [sh, -c, {command}]\n" if command else ""
    return _TASK.format(
        name=name, replicas=replicas, command=run, cpu=cpu, memory=memory, gpu=gpu, image=image, policies=policies
    )


def _body(minimum: int, *tasks: str, plugins: str = "") -> str:
    head = f"  minAvailable: {minimum}   # the gang: together or not at all\n"
    return head + plugins + _RESTARTS + "  tasks:\n" + "".join(tasks)


_TORCH = "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"
_TF = "tensorflow/tensorflow:2.18.0-gpu"
_MPI = "volcanosh/example-mpi:0.0.3"
_RAY = "rayproject/ray:2.49.0-gpu"
_SPARK = "apache/spark:3.5.3"
_DRIVER = (
    "'/opt/spark/bin/spark-class org.apache.spark.deploy.master.Master & "
    "/opt/spark/bin/spark-submit --master spark://$(hostname):7077 job.py'"
)
_EXECUTOR = "'/opt/spark/bin/spark-class org.apache.spark.deploy.worker.Worker spark://$VC_DRIVER_HOSTS:7077'"

SHAPES: tuple[Shape, ...] = (
    Shape(
        "pytorch",
        _("PyTorch"),
        _("One master and workers that find it through MASTER_ADDR and RANK"),
        _body(
            3,
            _task("master", 1, "torchrun train.py", gpus=1, cpu=4, memory="16Gi", image=_TORCH, ends=True),
            _task("worker", 2, "torchrun train.py", gpus=1, cpu=4, memory="16Gi", image=_TORCH),
            plugins='  plugins:\n    pytorch: ["--master=master", "--worker=worker", "--port=23456"]\n',
        ),
    ),
    Shape(
        "tensorflow",
        _("TensorFlow"),
        _("Parameter servers and workers that read TF_CONFIG"),
        _body(
            3,
            _task("ps", 1, "python train.py", image=_TF),
            _task("worker", 2, "python train.py", gpus=1, cpu=4, memory="16Gi", image=_TF, ends=True),
            plugins="  plugins:\n    tensorflow: []\n",
        ),
    ),
    Shape(
        "mpi",
        _("MPI"),
        _("One master that starts mpirun on its workers over SSH"),
        _body(
            3,
            _task("master", 1, "'mpirun --host ${MPI_HOST} -np 2 ./solve'", image=_MPI, ends=True),
            _task("worker", 2, "/usr/sbin/sshd -D", gpus=1, cpu=4, memory="16Gi", image=_MPI),
            plugins='  plugins:\n    mpi: ["--master=master", "--worker=worker", "--port=22"]\n    ssh: []\n    svc: []\n',
        ),
    ),
    Shape(
        "ray",
        _("Ray"),
        _("A head and workers; the plugin starts Ray in them"),
        _body(
            3,
            _task("head", 1, "", cpu=4, memory="8Gi", image=_RAY),
            _task("worker", 2, "", gpus=1, cpu=4, memory="16Gi", image=_RAY),
            plugins='  plugins:\n    ray: ["--head=head", "--worker=worker", "--port=6379", "--dashboardPort=8265"]\n',
        ),
    ),
    Shape(
        "spark",
        _("Spark"),
        _("A driver and executors that find it; it ends with the driver"),
        _body(
            3,
            _task("driver", 1, _DRIVER, cpu=2, memory="4Gi", image=_SPARK, ends=True),
            _task("executor", 2, _EXECUTOR, cpu=4, memory="8Gi", image=_SPARK),
            plugins="  plugins:\n    svc: []   # VC_DRIVER_HOSTS\n",
        ),
    ),
    Shape(
        "gang",
        _("Gang"),
        _("Equal pods that start together or not at all"),
        _body(4, _task("worker", 4, "./run.sh", gpus=1, image="ubuntu:24.04")),
    ),
    Shape(
        "single",
        _("Single pod"),
        _("One pod, with or without a GPU"),
        _body(1, _task("main", 1, "'echo hello'", image="ubuntu:24.04")),
    ),
)

BY_KEY = {shape.key: shape for shape in SHAPES}
