"""The engine behind the Python package, the page, the API and the command line: (image, choices) -> Exploration.

It chooses the device, loads each model once and caches recent results; whatever takes time runs as a job (see
``jobs``). Nothing depends on the caches: what they evict is computed again. All interfaces share one engine a device.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Generator, Hashable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import torch

from vit_demo import images
from vit_demo.accelerator import best_device, device_name, needs_zero_gpu, zero_gpu
from vit_demo.checks import find_device, path_or_name
from vit_demo.errors import InputError
from vit_demo.inference import forward
from vit_demo.inference.cache import ByteCache
from vit_demo.inference.exploration import Exploration
from vit_demo.inference.inputs import Fit, ModelInput, check_fit, default_preset
from vit_demo.inference.networks import Networks
from vit_demo.inference.words import other_words
from vit_demo.scores import Scores
from vit_demo.service.backend import Backend, Call
from vit_demo.service.job import Job, Turn, report, report_to
from vit_demo.service.job_limits import POOLS, PREPARED_BYTES, job_bytes, result_bytes
from vit_demo.service.jobs import JobRunner, check_share
from vit_demo.service.source import Source, pool_of
from vit_demo.service.together import Drawing
from vit_demo.trace import TracedViT
from vit_demo.weights import PRESETS, Preset, costs, find_preset
from vit_demo.weights.hub.repository import DownloadProgress, fetch_files, is_on_machine, prove
from vit_demo.weights.taught_heads import with_classes

T = TypeVar("T")


class Engine:
    """Runs models on one device; safe to call from several threads.

    Args:
        device: ``"cuda"``, ``"mps"``, ``"cpu"``, or None for the best available.
        backend: Where networks run; None for this process.
    """

    def __init__(self, device: str | None = None, backend: Backend | None = None) -> None:
        self.device = find_device(device) if device else best_device()
        # Another process that computes counts its memory itself.
        self.jobs = JobRunner(backend.pools, sys.maxsize) if backend else JobRunner(POOLS)
        self._backend = backend
        self._models = Networks()
        self._results: ByteCache[Exploration] = ByteCache(result_bytes(self.device), lambda result: result.num_bytes)
        self._prepared: ByteCache[Preset] = ByteCache(PREPARED_BYTES, lambda preset: 100 * len(preset.labels))
        self._execute_on_zero_gpu = zero_gpu(self._execute)

    def __reduce__(self) -> tuple[Callable[[str], Engine], tuple[str]]:
        """Pickles as the shared engine of the device: results hold their engine, and may go to other processes."""
        return get_engine, (str(self.device),)

    @property
    def device_name(self) -> str:
        """Where networks run, in a few words for people."""
        return self._backend.device if self._backend else device_name(self.device)

    @property
    def loaded(self) -> list[str]:
        """Names of the checkpoints in memory, without visitors' own models."""
        known = {preset.checkpoint_name(p) for preset in PRESETS.values() for p in preset.patch_sizes}
        return sorted(known & {name for name, *_ in self._models.list_keys()})

    def explore(
        self,
        image: images.ImageSource,
        preset: str | os.PathLike[str] | None = None,
        patch_size: int | None = None,
        fit: Fit = "crop",
        progress: DownloadProgress | None = None,
        scores: Scores | None = None,
    ) -> Exploration:
        """As ``vit_demo.explore``, on this engine's device; ``scores`` are the preset's for None.

        While weights are downloaded, ``progress`` is called with the file, the bytes so far and all bytes; None draws a
        bar on stderr.
        """
        check_fit(fit)
        source = Source.of(image)
        name = default_preset(source.read()) if preset is None else path_or_name(preset)
        chosen = self.ready(name) or self.prepare(name, progress).result()
        chosen = replace(chosen, scores=scores or chosen.scores)
        return self.explore_source(source, chosen, chosen.check_patch_size(patch_size), fit)

    def explore_source(
        self,
        source: Source,
        preset: Preset,
        patch_size: int,
        fit: Fit = "crop",
        dropped: tuple[tuple[int, int], ...] = (),
        silent: tuple[tuple[int, int], ...] = (),
        *,
        drawing: Drawing | None = None,
        keep: bool = True,
    ) -> Exploration:
        """As ``explore`` (and ``drop_patches``), for a picture that is read only if the result is not cached.

        Heads that are ``silent`` are as of ``without``. A ``drawing`` of the source is run with others that wait;
        without ``keep`` the result is not cached.
        """
        of_model = ("result", source.identity, patch_size, fit if preset.task == "photos" else "", dropped, silent)
        key, any_words = (*of_model, preset), (*of_model, self._model_key(preset, patch_size))

        def compute() -> Exploration:
            if silent:
                return self.explore_source(source, preset, patch_size, fit, dropped).without(heads=silent)
            if dropped:
                return self.explore_source(source, preset, patch_size, fit).drop_patches(dropped)
            run, where = partial(self.run_on_model, preset, patch_size), partial(self._where, preset, patch_size)
            if preset.takes_words and (known := self._results.get(any_words)) is not None:
                return other_words(known, preset, run)
            given, done = drawing.run(run) if drawing else (ModelInput.of(source.read(), preset, patch_size, fit), None)
            found = Exploration.of(given, preset, patch_size, fit, run, where, done)
            if preset.takes_words and keep:
                self._results.put(any_words, found)
            return found

        if not keep:
            return self._results.get(key) or compute()
        nbytes = costs.forward(preset.config, patch_size, has_mask=preset.has_mask).nbytes
        return self.cached(self._results, key, compute, source.pool(preset), nbytes)

    def drawing(self, source: Source, preset: Preset, patch_size: int, pool: str) -> Drawing | None:
        """A digit that waits in a pool, for ``explore_source``; None where no passes are run together here."""
        if self._backend_of(preset) is not None or preset.task != "digits" or source.is_decoded is not None:
            return None
        return Drawing(
            (self, preset, patch_size, pool), lambda: ModelInput.of(source.read(), preset, patch_size, "crop")
        )

    def cached(self, cache: ByteCache[T], key: Hashable, compute: Callable[[], T], pool: str, nbytes: int = 0) -> T:
        """The cached value of a key, or else the result of a job, which is then cached."""

        def work() -> T:
            if (found := cache.get(key)) is None:  # it may have been added while this job was queued
                cache.put(key, found := compute())
            return found

        found = cache.get(key)
        return self.jobs.run(key, work, pool, nbytes) if found is None else found

    def ready(self, name: str, *, trusted: bool = True) -> Preset | None:
        """A preset that needs no download; None if it must be prepared first."""
        preset = PRESETS.get(name) or self._prepared.get((name, trusted))
        if preset is None or is_on_machine(preset):
            return preset
        return preset if self._model_key(preset, preset.default_patch_size) in self._models else None

    def prepare(self, name: str, progress: DownloadProgress | None = None, *, trusted: bool = True) -> Job[Preset]:
        """Starts a job that looks up a preset and downloads its weights if necessary, reporting as ``explore``.

        Its result is the preset, or it raises ``PresetError`` or ``CheckpointError``. Only a ``trusted`` name may refer
        to folders of this machine and use its Hub token. What others name is proved in a turn of its own.
        """

        def report_file(file: str, done: int, total: int) -> None:
            report(done, total)
            if progress is not None:
                progress(file, done, total)

        def work() -> Generator[Turn, None, Preset]:
            preset = find_preset(name, progress and report_file, trusted=trusted, proved=trusted)
            if not trusted and preset.structure is None:
                cost = costs.proof(preset.config, preset.default_patch_size, has_mask=preset.has_mask)
                check_share(nbytes := cost.nbytes + 8 * preset.num_parameters)  # those of the file, too
                yield Turn("custom proofs", nbytes, cost.seconds)
                preset = prove(preset, lambda: report(0, 0))
            is_elsewhere = preset.is_downloaded or preset.is_folder
            if is_elsewhere and self._model_key(preset, preset.default_patch_size) not in self._models:
                fetch_files(preset, progress and report_file)
            if not preset.is_folder:  # the files of a folder may change
                self._prepared.put((name, trusted), preset)
            return preset

        pool = "downloads" if trusted else "custom downloads"
        return self.jobs.submit(("prepare", name, trusted), work, pool)

    def warm_up(self, name: str) -> Job[None]:
        """Starts a job that loads a model and runs it on a blank image, so that the first visitor does not wait."""
        preset = find_preset(name)

        def work() -> None:
            size = (1, preset.config.in_channels, preset.image_size, preset.image_size)
            blank = torch.zeros(size, dtype=torch.float32)
            try:
                self.run_on_model(preset, preset.default_patch_size, forward.forward_with_trace, blank)
            except InputError as error:
                logging.getLogger(__name__).error("The preset %s cannot be used: %s", name, error)

        return self.jobs.submit(("warm up", name), work, pool_of(preset))

    def model(self, preset: Preset, patch_size: int) -> TracedViT:
        """The network for a patch size, on this engine's device, loaded once, unless one of ``kept_networks``."""
        if preset.is_kept:
            return Networks.load(preset, patch_size, self.device)
        nbytes = 4 * preset.num_parameters_at(patch_size)
        load = partial(Networks.load, preset, patch_size, self.device)
        return self.cached(self._models, self._model_key(preset, patch_size), load, pool_of(preset), nbytes)

    def run_on_model(
        self,
        preset: Preset,
        patch_size: int,
        function: Callable[..., T],
        /,
        *arguments: Any,
        slow: bool = False,
        **options: Any,
    ) -> T:
        """Runs a function on the network of a preset.

        See ``forward.RunOnModel``. Tensors among the arguments and options are moved to the network's device. The job
        reports what ``progress`` is called with.
        """
        forks, backend = needs_zero_gpu(preset.num_parameters_at(patch_size)), self._backend_of(preset)
        if "progress" in options:
            options["progress"] = None if forks or backend else partial(report_to, options["progress"])
        if forks or backend:
            options.pop("tried", None)

        def work() -> T:
            if backend is not None:
                return backend.execute(Call(preset, patch_size, function, arguments, options, slow))
            # Loaded before the fork, so that the child has the network, and its words are encoded once.
            with_classes(self.model(preset, patch_size), preset)
            execute = self._execute_on_zero_gpu if forks else self._execute
            return execute(preset, patch_size, function, arguments, options)

        nbytes = job_bytes(preset, patch_size, slow=slow)
        return self.jobs.run(None, work, pool_of(preset, slow=slow), nbytes)

    def _execute(
        self, preset: Preset, patch_size: int, function: Callable[..., T], arguments: tuple, options: dict[str, Any]
    ) -> T:
        """Runs the function; on ZeroGPU in a fork, so no lock may be taken here and gradients must not leave it."""

        def attempt(device: torch.device) -> T:
            model = self._models.peek(self._model_key(preset, patch_size))
            if model is None or (device != self.device and not forked):
                model = Networks.load(preset, patch_size, device)
            elif forked:
                model = model.to(device)  # no other thread uses it there
            model = with_classes(model, preset)
            return forward.run_on(model, device, function, arguments, {**options, "patch_size": patch_size})

        forked = needs_zero_gpu(preset.num_parameters_at(patch_size))
        return forward.retry_with_less_memory(attempt, best_device(forked=True) if forked else self.device)

    def _backend_of(self, preset: Preset) -> Backend | None:
        """Where a preset's network runs; None for this process, whose memory alone has those that visitors trained."""
        return None if preset.is_kept else self._backend

    def _where(self, preset: Preset, patch_size: int, device: torch.device) -> str:
        """Where a pass ran, in words, and why if it is not the engine's device."""
        if self._backend_of(preset) is not None:
            return self.device_name
        if needs_zero_gpu(preset.num_parameters_at(patch_size)):
            return "ZeroGPU"
        if device.type == self.device.type:
            return device_name(self.device)
        return f"{device_name(device)}, because the memory of the GPU was too small"

    def _model_key(self, preset: Preset, patch_size: int) -> tuple[Any, ...]:
        return Networks.key(preset, patch_size, self.device)


_engines: dict[str, Engine] = {}
_engines_lock = threading.Lock()


def get_engine(device: str | None = None) -> Engine:
    """The shared engine of a device, ``"cuda"``, ``"mps"`` or ``"cpu"``; of the best available for None."""
    name = str(find_device(device) if device else best_device())
    with _engines_lock:
        if name not in _engines:
            _engines[name] = Engine(name)
        return _engines[name]


def install_engine(engine: Engine) -> None:
    """Replaces the shared engine of the best device, which the page uses."""
    with _engines_lock:
        _engines[str(best_device())] = engine
