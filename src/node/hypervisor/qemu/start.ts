/**
 * Starts a domain step by step; if a step fails, the earlier ones are undone. The record is on disk before the first
 * process starts, and contains the processes before the guest runs, so that the next node agent can continue after a
 * kill at any time.
 */
import type { FileHandle } from 'node:fs/promises';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { IncomingMigration } from '#node/hypervisor/migration.ts';
import { addKvmGroup } from '#node/hypervisor/qemu/process/accelerator.ts';
import { qemuArguments } from '#node/hypervisor/qemu/arguments/qemu-arguments.ts';
import { findDiskProblem } from '#node/hypervisor/qemu/disks/disk-problem.ts';
import { QemuExitError } from '#node/hypervisor/qemu/monitor/monitor.ts';
import { clearTpmState } from '#node/hypervisor/qemu/state/move-state.ts';
import { startLine } from '#node/hypervisor/qemu/process/process-log.ts';
import type { QemuContext } from '#node/hypervisor/qemu/process/context.ts';
import {
  AGENT_SOCKET,
  DISPLAY_SOCKET,
  NVRAM,
  QMP_SOCKET,
  SERIAL_SOCKET,
  TPM_SOCKET,
  type DomainDir,
} from '#node/hypervisor/qemu/record/domain-dir.ts';
import type { DomainRecord, MigrationRecord } from '#node/hypervisor/qemu/record/domain-record.ts';
import { findFirmware, type FirmwareFiles } from '#node/hypervisor/qemu/state/firmware.ts';
import { GuestPaths } from '#node/hypervisor/qemu/record/guest-paths.ts';
import { ensurePersistentState, type PersistentState } from '#node/hypervisor/qemu/state/persistent-state.ts';
import { spawnDetached, type DetachedProcess } from '#node/hypervisor/qemu/process/process.ts';
import { QemuDomain } from '#node/hypervisor/qemu/qemu-domain.ts';
import { lockState } from '#node/hypervisor/qemu/state/state-lock.ts';
import { startSwtpm } from '#node/hypervisor/qemu/state/swtpm.ts';
import { addTap, removeTap, tapName, tapsOf } from '#node/hypervisor/qemu/process/tap.ts';

/** Enough for emulated machines with much memory on a busy host. */
const MONITOR_TIMEOUT_MS = 60_000;
const KILL_MS = 5000;

export interface StartOptions {
  /** The guest must not start to run by itself, not even after a restart of the node agent. */
  readonly paused: boolean;
  /** Set if the domain waits for a guest from another node. */
  readonly incoming?: IncomingMigration;
  /** Called once QEMU can be used; the guest has not run yet. */
  readonly onReady: (domain: QemuDomain) => Promise<void>;
  readonly signal: AbortSignal | undefined;
  readonly onChange: (id: string) => void;
}

export async function startQemuDomain(
  dir: DomainDir,
  definition: DomainDefinition,
  context: QemuContext,
  options: StartOptions,
): Promise<QemuDomain> {
  const undo: (() => Promise<void>)[] = [];
  try {
    return await start(dir, definition, context, options, undo);
  } catch (cause) {
    for (const step of undo.reverse()) {
      await step().catch((err: unknown) => context.log.error({ err, domain: dir.id }, 'Cannot undo a failed start'));
    }
    if (options.signal?.aborted === true) throw cause;
    const { message } = cause as Error;
    const option = cause instanceof QemuExitError ? cause.option : undefined;
    const disk = option && findDiskProblem(option, definition.devices);
    const permanent = (cause instanceof HypervisorError && cause.permanent) || disk?.is === 'damaged';
    throw new HypervisorError(`Cannot start domain "${definition.name}": ${message}`, { cause, permanent, disk });
  }
}

async function start(
  dir: DomainDir,
  definition: DomainDefinition,
  context: QemuContext,
  { paused, signal, onChange, incoming, onReady }: StartOptions,
  undo: (() => Promise<void>)[],
): Promise<QemuDomain> {
  signal?.throwIfAborted();
  const firmware = await findFirmware(definition.firmware.loader, context.ovmfDir);
  undo.push(() => dir.clear());
  await dir.prepare(context.user);
  const migration = incoming === undefined ? {} : { migration: waitingRecord(incoming) };
  const record: DomainRecord = { version: 1, definition, paused, ...migration };
  await dir.writeRecord(record, { durable: false });

  for (const tap of tapsOf(definition)) {
    await addTap(tap, context.user);
    undo.push(() => removeTap(tap.name));
  }
  await using lock = await lockState(definition);
  const persistent = await ensurePersistentState(definition, firmware, context.user);
  if (firmware !== undefined && persistent.nvram === undefined) {
    await dir.copyIntoRun(firmware.variables, NVRAM, context.user);
  }

  if (incoming !== undefined && persistent.tpm !== undefined) await clearTpmState(persistent.tpm);

  const killOnUndo = (process: DetachedProcess) => undo.push(() => killProcess(process));
  let swtpm: DetachedProcess | undefined;
  if (needsTpm(definition)) {
    await startSwtpm(dir, { ...context, binary: context.swtpmBinary, stateDirectory: persistent.tpm }, (process) => {
      swtpm = process;
      killOnUndo(process);
    });
  }
  signal?.throwIfAborted();
  const qemu = await spawnQemu(dir, definition, { firmware, persistent, lock, incoming }, context);
  killOnUndo(qemu);

  const startedAtMs = incoming?.startedAtMs ?? context.clock.now();
  const started = { startedAtMs, qemu: qemu.identity, swtpm: swtpm?.identity };
  await dir.writeRecord({ ...record, started }, { durable: true });
  const domain = new QemuDomain({ dir, record: { ...record, started }, qemu, swtpm, context, onChange });
  undo.push(() => domain.close());
  await domain.connect({ timeoutMs: MONITOR_TIMEOUT_MS, signal });
  await domain.hotplug.setLinksDown();
  signal?.throwIfAborted();
  await onReady(domain);
  return domain;
}

function waitingRecord({ uid, peer, disks, paused }: IncomingMigration): MigrationRecord {
  return { uid, peer, disks, role: 'target', step: 'waiting', goesOn: !paused };
}

interface QemuFiles {
  readonly firmware: FirmwareFiles | undefined;
  readonly persistent: PersistentState;
  readonly lock: FileHandle | undefined;
  readonly incoming: IncomingMigration | undefined;
}

async function spawnQemu(
  dir: DomainDir,
  definition: DomainDefinition,
  { firmware, persistent, lock, incoming }: QemuFiles,
  { accelerator, user, qemuBinary, clock }: QemuContext,
): Promise<DetachedProcess> {
  const paths = new GuestPaths(dir, { inherit: user !== undefined });
  const args = qemuArguments(definition, {
    accelerator,
    qmpSocket: QMP_SOCKET,
    serialSocket: SERIAL_SOCKET,
    displaySocket: DISPLAY_SOCKET,
    agentSocket: AGENT_SOCKET,
    redirectionSocket: (deviceId) => `${deviceId}.sock`,
    nowMs: () => clock.now(),
    ...(needsTpm(definition) ? { tpmSocket: TPM_SOCKET } : {}),
    ...(firmware === undefined
      ? {}
      : { nvram: persistent.nvram ? paths.pathFor(persistent.nvram) : NVRAM, ovmfCode: firmware.code }),
    pathOf: (absolute) => paths.pathFor(absolute),
    tapOf: (deviceId) => tapName(definition.id, deviceId),
  });
  const log = await dir.openLog('qemu.log');
  try {
    const defer = incoming === undefined ? [] : ['-incoming', 'defer'];
    const words = [...args, ...defer, '-chardev', qemuMarker(dir.id)];
    await log.write(startLine(qemuBinary, words));
    const { nice } = definition;
    return await spawnDetached(
      {
        // Threads inherit the niceness of their process, so it must be set before QEMU starts; `nice` execs QEMU.
        ...(nice === undefined
          ? { command: qemuBinary, args: words }
          : { command: 'nice', args: ['-n', String(nice), qemuBinary, ...words] }),
        cwd: dir.run,
        user: await addKvmGroup(user, accelerator),
        logFd: log.fd,
        // QEMU only holds the descriptor of the lock; it does not use it.
        fds: [...(await paths.open()), ...(lock === undefined ? [] : [lock.fd])],
      },
      clock,
    );
  } finally {
    await log.close();
    await paths.close();
  }
}

/** Returns the argument by which a QEMU is found if its pid was not recorded: an unused character device. */
export function qemuMarker(id: string): string {
  return `null,id=domain-${id}`;
}

function needsTpm({ devices }: DomainDefinition): boolean {
  return devices.some(({ type }) => type === 'tpm');
}

async function killProcess(process: DetachedProcess): Promise<void> {
  await process.kill('SIGKILL');
  await process.waitForExit(KILL_MS);
}
