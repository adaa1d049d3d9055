"""The page on a cluster, with Ray Serve: ``serve run vit_demo.serve:app``. Needs the extra ``serve``.

Two deployments: replicas of the page, which decode pictures, keep results and answer browsers, and a pool of model
replicas, which run the networks. What crosses between them is what ``service.backend`` describes: module-level
functions, an input, a trace. See ``docs/hosting.md``.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import torch
from pydantic import BaseModel, Field
from ray import serve
from ray.exceptions import RayActorError
from ray.serve import Application
from ray.serve.config import RequestRouterConfig
from ray.serve.handle import DeploymentHandle

from vit_demo.accelerator import device_name
from vit_demo.errors import BusyError, InputError
from vit_demo.inference.forward import forward_batch, forward_with_trace
from vit_demo.service.backend import Call, decode, encode
from vit_demo.service.engine import Engine, install_engine
from vit_demo.service.job_limits import POOLS
from vit_demo.web.catalog.menu import default_photo_preset
from vit_demo.web.server import asgi_app
from vit_demo.weights import DEFAULT_PRESETS, Preset

MAX_BATCH, BATCH_WAIT_SECONDS = 8, 0.004  # images in one pass, and how long the first waits for others
PAGE_THREADS = 32  # calls of one page replica under way in each pool: its threads only wait
RETRY_SECONDS = 60.0  # how long a call is repeated when replicas die: until a new one has started
CALL_SECONDS = 300.0  # the longest time a call may take


class Options(BaseModel):
    """What ``serve run vit_demo.serve:app name=value`` sets."""

    pages: int = Field(1, ge=1, description="page replicas; more than one need a session header, see docs/hosting.md")
    models: int = Field(0, ge=0, description="model replicas; 0 to scale from 1 to max_models with the load")
    max_models: int = Field(4, ge=1, description="most model replicas when scaling")
    model_cpus: float = Field(1, ge=0, description="processor cores of a model replica")
    model_gpus: float = Field(0, ge=0, description="GPUs of a model replica, or a share of one")


def app(options: Options) -> Application:
    """The application: page replicas in front of model replicas.

    Ray reads the annotation to convert the arguments of ``serve run``, so annotations of this module are not strings.
    """
    resources = {"num_cpus": options.model_cpus, "num_gpus": options.model_gpus}
    bounds = {"min_replicas": 1, "max_replicas": options.max_models}
    pace = {"target_ongoing_requests": 4, "upscale_delay_s": 5, "downscale_delay_s": 120}
    replicas = {"num_replicas": options.models} if options.models else {"autoscaling_config": bounds | pace}
    models = Models.options(ray_actor_options=resources, **replicas)  # type: ignore[attr-defined]
    return Page.options(num_replicas=options.pages).bind(models.bind())  # type: ignore[attr-defined]


@serve.deployment(max_ongoing_requests=32, health_check_period_s=5, health_check_timeout_s=30)
class Models:
    """Runs networks; a replica has an engine of its own, with its pools, limits and cached models."""

    def __init__(self) -> None:
        self._engine = Engine()
        self._passes, self._others = ThreadPoolExecutor(2), ThreadPoolExecutor(PAGE_THREADS)
        for name in (DEFAULT_PRESETS["digits"], default_photo_preset()):
            self._engine.warm_up(name).result()

    def device(self) -> str:
        """Where this replica computes."""
        return device_name(self._engine.device)

    async def check_health(self) -> None:
        """Called by Ray, which replaces a replica that raises here or takes too long: a pass must go through."""
        await self._engine.warm_up(DEFAULT_PRESETS["digits"]).result_async()

    async def execute(self, call: bytes) -> bytes:
        """Runs one call; see ``Call``."""
        return await asyncio.get_running_loop().run_in_executor(self._others, self._execute, decode(call))

    @serve.batch(max_batch_size=MAX_BATCH, batch_wait_timeout_s=BATCH_WAIT_SECONDS, max_concurrent_batches=2)
    async def forward(self, calls: list[bytes]) -> list[bytes]:
        """Runs calls of ``forward_with_trace``, those of the same network and size in one pass."""
        return await asyncio.get_running_loop().run_in_executor(self._passes, self._forward, calls)

    def _execute(self, call: Call) -> bytes:
        preset, patch_size, function, arguments, options, slow = call
        try:
            found = self._engine.run_on_model(preset, patch_size, function, *arguments, slow=slow, **options)
        except InputError as error:
            return encode((None, error))
        return encode((found, None))

    def _forward(self, calls: list[bytes]) -> list[bytes]:
        groups: dict[Any, list[tuple[int, Call]]] = defaultdict(list)
        for index, call in enumerate(map(decode, calls)):
            groups[call.preset, call.patch_size, call.arguments[0].shape].append((index, call))
        found: dict[int, bytes] = {}
        for (preset, patch_size, _), group in groups.items():
            if len(group) > 1:
                found |= self._forward_together(preset, patch_size, group)
            found |= {index: self._execute(call) for index, call in group if index not in found}
        return [found[index] for index in range(len(calls))]

    def _forward_together(self, preset: Preset, patch_size: int, group: list[tuple[int, Call]]) -> dict[int, bytes]:
        """The results of one pass; those that failed are left out."""
        pixels = torch.cat([call.arguments[0] for _, call in group])
        try:
            results = self._engine.run_on_model(preset, patch_size, forward_batch, pixels)
        except InputError:
            return {}
        return {index: encode((result, None)) for (index, _), result in zip(group, results, strict=True)}


class RayBackend:
    """An engine's backend that sends calls to the pool of model replicas."""

    def __init__(self, models: DeploymentHandle) -> None:
        waiting = {name: replace(pool, workers=PAGE_THREADS, threads=1) for name, pool in POOLS.items()}
        # What the page's own process does: networks are trained there, and those of visitors proved.
        self.pools = waiting | {name: POOLS[name] for name in ("health", "training", "custom proofs")}
        self._models = models
        self._device = ""

    @property
    def device(self) -> str:
        """Where the first replica computes; all have the same hardware."""
        if not self._device:
            self._device = self._call(lambda: self._models.device.remote())
        return self._device

    def execute(self, call: Call) -> Any:
        """Runs a function on a network of any replica, on another one if it dies; raises what the function raises.

        If no replica replies for a minute, that is ``BusyError``.
        """
        single = call.function is forward_with_trace and call.options.get("kept_patches") is None
        method, sent = self._models.forward if single else self._models.execute, encode(call)
        found, error = decode(self._call(lambda: method.remote(sent)))
        if error is not None:
            raise error
        return found

    @staticmethod
    def _call(send: Callable[[], Any]) -> Any:
        """The reply; a call has no effect but its result, so it can be repeated when a replica dies."""
        deadline = time.monotonic() + RETRY_SECONDS
        while True:
            try:
                return send().result(timeout_s=CALL_SECONDS)
            except RayActorError as error:
                if time.monotonic() > deadline:
                    raise BusyError("The servers of the models do not reply: try again in a moment.") from error
                time.sleep(0.2)


@serve.deployment(
    max_ongoing_requests=256,
    health_check_period_s=5,
    health_check_timeout_s=30,
    ray_actor_options={"num_cpus": 1},
    # Uploads and the queue belong to one replica: the requests of a visitor go there by the header x-session-id.
    request_router_config=RequestRouterConfig(
        request_router_class="ray.serve.experimental.consistent_hash_router:ConsistentHashRouter"
    ),
)
@serve.ingress()
class Page:
    """The page, whose engine runs no network itself."""

    def __init__(self, models: DeploymentHandle) -> None:
        install_engine(Engine("cpu", RayBackend(models)))

    def __serve_build_asgi_app__(self) -> Any:
        """Called by Ray: the page as an ASGI application."""
        return asgi_app()
