"""The story of one run, on one rank."""

from __future__ import annotations

import os
from collections.abc import Callable
from inspect import get_annotations

import torch
from omegaconf import OmegaConf
from torch import Tensor

from sam_repro import methods, models, own
from sam_repro.config.budget import epochs, warmup_epochs, warmup_steps
from sam_repro.config.identity import as_values
from sam_repro.config.schema import Config, Precision
from sam_repro.data.declared import TEXT, Split
from sam_repro.engine import optimizer as optimizers
from sam_repro.engine.batchnorm import RunningStatistics
from sam_repro.engine.checkpoint import Checkpoints, Misfit
from sam_repro.engine.compiled import compiled
from sam_repro.engine.keep import Keeper, write_weights
from sam_repro.engine.loop import Loop
from sam_repro.engine.precision import LossScale
from sam_repro.engine.ranks import Ranks
from sam_repro.engine.requests import Interrupted
from sam_repro.engine.schedule import Schedule
from sam_repro.engine.setup import before_cuda, prepare
from sam_repro.engine.state import TrainState
from sam_repro.engine.step import Stepper
from sam_repro.engine.task import Task, united
from sam_repro.errors import DISK_FULL, FULL, INTERRUPTED, USER_ERROR, Shared, UserError, complain
from sam_repro.files.lines import encode_indented
from sam_repro.leased import forget, leased
from sam_repro.record import Recorder, summarise, write_atomic
from sam_repro.record.environment import environment
from sam_repro.record.metrics import REMEDY, read
from sam_repro.runs import archive, ledger
from sam_repro.runs.entry import entry_of
from sam_repro.runs.outcome import already, finished, in_words
from sam_repro.runs.run import Run
from sam_repro.tasks.classification.task import Classification
from sam_repro.tasks.described import recorded
from sam_repro.tasks.metric import Metric

EXPENSIVE = 8  # passes a step, above which a run says its cost before it starts


def train(run: Run, config: Config) -> int:
    """Train one run, or the rest of it; the exit code of `sam_repro.errors`."""
    before_cuda(config.runtime)
    ranks = Ranks.join(config.runtime)
    try:
        code = trained(run, config, ranks)
    except Shared:
        ranks.leave()
        raise
    except Exception as error:
        return failed(error, run, ranks)
    ranks.leave()
    return code


def failed(error: Exception, run: Run, ranks: Ranks) -> int:
    """This rank ends, and takes the others along."""
    full = isinstance(error, OSError) and error.errno in FULL

    def tell() -> None:
        if full:
            again = "the last good checkpoint is kept. Make room and run the same command again"
            print(f"error: the disk of {run.path} is full; {again}", flush=True)
        else:
            complain(str(error), every_rank=True)

    if ranks.company is None:
        if not full:
            raise error
        tell()
        return DISK_FULL
    if full or isinstance(error, UserError):
        ranks.company.end(DISK_FULL if full else USER_ERROR, tell)
    ranks.company.crashed(error)


def trained(run: Run, config: Config, ranks: Ranks) -> int:
    loop = ranks.together(lambda: prepared(config, ranks))
    with leased(run, ranks) as ours:
        # Seen while it is ours: another process may have finished the run while this one was starting.
        if not ours:
            return INTERRUPTED
        summary, ended = ranks.share((finished(run), run.done.exists()) if ranks.main else (None, False))
        if summary is not None and not config.force:
            if ranks.main:
                print(already(summary), flush=True)
            return 0
        if ended:  # once more, or its summary is damaged
            forget(run, ranks)
        return carry_out(run, config, loop)


def task_of(config: Config, device: torch.device) -> Task:
    """What the run learns, its data loaded."""
    if config.task is None:
        if config.dataset.name not in TEXT:
            return Classification.load(config, device)
        from sam_repro.tasks.translation.task import Translation

        return Translation.load(config, device)
    made = own.load("task", config.task)(config, device)
    lacking = [name for name in (*get_annotations(Task), *vars(Task)) if name[0] != "_" and not hasattr(made, name)]
    if lacking:
        name = config.task.partition("@")[0]
        raise UserError(f"task={name} returns a {type(made).__name__} without {', '.join(lacking)}: see engine/task.py")
    task: Task = made
    return task


def prepared(config: Config, ranks: Ranks) -> Loop:
    """Everything that a run needs, in memory; nothing is written yet."""
    # ------------------------------------------------------------------------------------------------ what is trained
    prepare(config.runtime, config.seed, int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
    task = task_of(config, ranks.device)
    model = task.build().to(ranks.device)
    if config.runtime.channels_last:
        model = model.to(memory_format=torch.channels_last)
    forward: Callable[..., Tensor] = compiled(model) if config.runtime.compile else model

    # -------------------------------------------------------------------------------------------------- how it learns
    can_overflow = config.runtime.precision is Precision.fp16
    try:
        method = methods.build(config.method, model, seed=config.seed, rollback=can_overflow)
    except ValueError as error:  # a scope that none of this model's parameters is in
        raise UserError(str(error)) from error
    optimizer = optimizers.build(config.base_optimizer, model)
    batch, count = config.loop.batch_size, total(task)
    if task.train.steps(batch, True) < 1:
        raise UserError(f"loop.batch_size={batch} exceeds the {count} training {task.unit}: lower it")
    larger = config.method.ascent_batch
    if larger is not None and larger > count:
        # It would hold the same examples several times over, at the price of as many passes.
        raise UserError(f"method.ascent_batch={larger} exceeds the {count} training {task.unit}: lower it")
    steps = task.train.steps(batch, config.loop.drop_last)
    steps = min(steps, config.budget.max_steps or steps)
    if config.dataset.evaluate_on is Split.both and task.validation is None:
        raise UserError("dataset.evaluate_on=both: this task has no validation set; leave it out")
    warmup = warmup_epochs(config), warmup_steps(config)
    schedule = Schedule(config.schedule, config.base_optimizer.lr, steps, epochs(config), *warmup)
    statistics, scale = RunningStatistics(model, config.loop.batchnorm), LossScale(can_overflow)
    shards = config.method.m and batch // config.method.m
    state = TrainState(model, method, optimizer, statistics, scale, shards=shards)
    stepper = Stepper(config, task, state, schedule, ranks, forward)
    return Loop(config, state, stepper, task, ranks)


def described_by(task: Task) -> tuple[Metric, ...]:
    """The results on the validation set too, where there is one: behind the task's own, whose first is the primary."""
    held = (metric.on_validation() for metric in task.metrics if metric.result)
    return task.metrics if task.validation is None else (*task.metrics, *held)


def total(task: Task) -> int:
    """What an epoch's examples weigh."""
    return task.train.size if task.train.weights is None else round(float(task.train.weights.sum()))


def carry_out(run: Run, config: Config, loop: Loop) -> int:
    task, metrics = loop.task, described_by(loop.task)
    ranks, steps = loop.ranks, loop.stepper.schedule.steps
    checkpoints = Checkpoints(run.checkpoints, ranks)
    gpus = [torch.cuda.get_device_name(ranks.device)] * ranks.world if ranks.device.type == "cuda" else []
    env = environment(gpus=gpus, ranks=ranks.world, device=ranks.device.type)
    stored, rejected = checkpoints.load()
    problem = ""
    if stored is not None:
        # Before the recorder opens, so that a refusal writes nothing.
        try:
            loop.state.load(stored, ranks, run.path)
        except Misfit as misfit:
            problem = str(misfit)
            if not config.force:
                raise Shared(f"{problem}; {REMEDY}") from misfit
            forget(run, ranks)
    with Recorder(
        run.path,
        as_values(config),
        config.track,
        run.id,
        main=ranks.main,
        total_steps=steps,
        epochs=epochs(config),
        metric=metrics[0],
    ) as recorder:
        # ---------------------------------------------------------------------- on from where an earlier start stopped
        for reason in rejected:
            recorder.incident("fell_back", reason=reason)
        if problem:
            recorder.incident("started_anew", reason=problem)
        recorder.rewind(loop.state.seen)
        if stored is not None and not problem:
            recorder.incident("resumed", step=loop.progress.step)
        if ranks.main:
            write_atomic(run.config, OmegaConf.to_yaml(OmegaConf.create(as_values(config))))
            write_atomic(run.env, encode_indented(env))
            write_atomic(run.described, encode_indented({"described": recorded(metrics)}))

        keeper = Keeper(run, config.loop, metrics[0], read(run.path)) if ranks.main else None
        for file in keeper.dropped if keeper is not None else ():
            recorder.incident("dropped", reason=f"{file.name} is of an epoch that is trained again")

        # ------------------------------------------------------------------------------------------------------ train
        passes = config.method.passes(config.loop.batch_size, total(task))
        if passes > EXPENSIVE:
            recorder.say(f"a step costs {passes:.0f} passes over a batch, this run {passes * steps:.0f}")
        try:
            status = loop.run(recorder, checkpoints, keeper)
        except Interrupted:
            recorder.incident("interrupted", step=loop.progress.step)
            recorder.say("stopped as asked, checkpoint saved: the same command goes on")
            return INTERRUPTED

        # ----------------------------------------------------------------------------------------------------- record
        facts = united(ranks.gather(task.facts))
        if ranks.main:
            write_weights(run.weights, loop.state.model)
            recorder.flush()
            records = read(run.path)
            summary = summarise(
                records,
                status,
                metrics=metrics,
                passes=loop.progress.step * passes,
                wall_seconds=loop.seconds(),
                unit=task.unit,
                run_id=run.id,
                parameters=models.count_parameters(loop.state.model),
                data=facts,
            )
            recorder.close(summary)
            archive.keep(run)
            ledger.append(run.results, entry_of(run, config, records, summary, env))
            write_atomic(run.done, "")
            print(f"done: {in_words(summary)}", flush=True)
        ranks.barrier()
        checkpoints.remove()
    return 0
