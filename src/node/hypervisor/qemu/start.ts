/**
 * Starts a domain step by step; if a step fails, the earlier ones are undone. The record is on disk before the first
 * process starts, and contains the processes before the guest runs, so that the next node agent can continue after a
 * kill at any time.
 */
import type { FileHandle } from 'node:fs/promises';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { IncomingMigration } from '#node/hypervisor/migration.ts';
import { qemuArguments } from '#node/hypervisor/qemu/arguments/qemu-arguments.ts';
import { findDiskProblem } from '#node/hypervisor/qemu/disks/disk-problem.ts';
import { exitError, QemuExitError } from '#node/hypervisor/qemu/monitor/monitor.ts';
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
import { guestPath } from '#node/hypervisor/qemu/record/guest-paths.ts';
import { giveFile } from '#node/hypervisor/qemu/sandbox/file-owner.ts';
import { sandboxLimits } from '#node/hypervisor/qemu/sandbox/limits.ts';
import type { Sandboxes } from '#node/hypervisor/qemu/sandbox/sandbox.ts';
import { diskFiles, ownFiles } from '#node/hypervisor/qemu/sandbox/visible-files.ts';
import { ensurePersistentState, type PersistentState } from '#node/hypervisor/qemu/state/persistent-state.ts';
import { spawnDetached, type DetachedProcess } from '#node/hypervisor/qemu/process/process.ts';
import { QemuDomain } from '#node/hypervisor/qemu/qemu-domain.ts';
import { lockState } from '#node/hypervisor/qemu/state/state-lock.ts';
import { startSwtpm, withSwtpm } from '#node/hypervisor/qemu/state/swtpm.ts';
import { addTap, removeTap, tapName, tapsOf } from '#node/hypervisor/qemu/process/tap.ts';

/** Enough for emulated machines with much memory on a busy host. */
const MONITOR_TIMEOUT_MS = 60_000;
const KILL_MS = 5000;

export interface StartOptions {
  /** The guest must not start to run by itself, not even after a restart of the node agent. */
  readonly paused: boolean;
  /** Set if the domain waits for a guest from another node. */
  readonly incoming?: IncomingMigration;
  /** The path of the network namespace of the sandbox; undefined: that of the host. */
  readonly networkNamespace?: string | undefined;
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
  { paused, signal, onChange, incoming, networkNamespace, onReady }: StartOptions,
  undo: (() => Promise<void>)[],
): Promise<QemuDomain> {
  signal?.throwIfAborted();
  const firmware = await findFirmware(definition.firmware.loader, context.ovmfDir);
  const { sandboxes } = context;
  const user = sandboxes?.userOf(dir.id);
  undo.push(() => dir.clear());
  await dir.prepare(user);
  const migration = incoming === undefined ? {} : { migration: waitingRecord(incoming) };
  const sandboxed = sandboxes === undefined ? {} : { sandboxed: true };
  const record: DomainRecord = { version: 1, definition, paused, ...sandboxed, ...migration };
  await dir.writeRecord(record, { durable: false });

  for (const tap of tapsOf(definition)) {
    await addTap(tap, user);
    undo.push(() => removeTap(tap.name));
  }
  await using lock = await lockState(definition);
  const persistent = await ensurePersistentState(definition, firmware, user);
  if (firmware !== undefined && persistent.nvram === undefined) {
    await dir.copyIntoRun(firmware.variables, NVRAM, user);
  }

  if (incoming !== undefined && persistent.tpm !== undefined) await clearTpmState(persistent.tpm);

  const killOnUndo = (process: DetachedProcess) => undo.push(() => killProcess(process));
  let swtpm: DetachedProcess | undefined;
  if (needsTpm(definition) && sandboxes === undefined) {
    await startSwtpm(dir, { ...context, binary: context.swtpmBinary, stateDirectory: persistent.tpm }, (process) => {
      swtpm = process;
      killOnUndo(process);
    });
  }
  signal?.throwIfAborted();
  if (sandboxes !== undefined) undo.push(() => sandboxes.remove(dir.id));
  const qemu = await startQemu(dir, definition, { firmware, persistent, lock, incoming, networkNamespace }, context);
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
  readonly networkNamespace: string | undefined;
}

async function startQemu(
  dir: DomainDir,
  definition: DomainDefinition,
  files: QemuFiles,
  context: QemuContext,
): Promise<DetachedProcess> {
  const log = await dir.openLog('qemu.log');
  try {
    const words = [...buildArguments(dir, definition, files, context), '-chardev', qemuMarker(dir.id)];
    await log.write(startLine(context.qemuBinary, words));
    // Threads inherit the niceness of their process, so it must be set before QEMU starts; `nice` execs QEMU.
    const { nice } = definition;
    const prefix = nice === undefined ? [] : ['nice', '-n', String(nice)];
    const command = [...prefix, context.qemuBinary, ...words];
    const { sandboxes } = context;
    if (sandboxes !== undefined)
      return await startSandboxed(dir, definition, { ...files, command }, log.fd, context, sandboxes);
    const [program = '', ...args] = command;
    return await spawnDetached(
      { command: program, args, cwd: dir.run, logFd: log.fd, fds: lockFds(files) },
      context.clock,
    );
  } finally {
    await log.close();
  }
}

async function startSandboxed(
  dir: DomainDir,
  definition: DomainDefinition,
  { command, ...files }: QemuFiles & { readonly command: readonly string[] },
  logFd: number,
  { accelerator, qemuBinary, swtpmBinary }: QemuContext,
  sandboxes: Sandboxes,
): Promise<DetachedProcess> {
  const disks = diskFiles(definition);
  for (const { path, use } of disks) {
    await giveFile(path, sandboxes.userOf(dir.id), use).catch((cause: unknown) => {
      throw new HypervisorError(`the disk "${path}" cannot be opened: ${(cause as Error).message}`, { cause });
    });
  }
  const hasTpm = needsTpm(definition);
  const swtpmLog = hasTpm ? await dir.openLog('swtpm.log') : undefined;
  try {
    const qemu = await sandboxes.start(dir, {
      command: hasTpm ? withSwtpm(dir.id, swtpmBinary, command) : command,
      files: [...ownFiles(dir, definition, { ...files, binaries: [qemuBinary, swtpmBinary] }), ...disks],
      limits: sandboxLimits(definition, accelerator),
      needsKvm: accelerator === 'kvm',
      networkNamespace: files.networkNamespace,
      logFd,
      fds: [...(swtpmLog === undefined ? [] : [swtpmLog.fd]), ...lockFds(files)],
    });
    if (qemu === undefined) throw await exitError(dir);
    return qemu;
  } finally {
    await swtpmLog?.close();
  }
}

/** QEMU only holds the descriptor of the lock; it does not use it. */
function lockFds({ lock }: QemuFiles): number[] {
  return lock === undefined ? [] : [lock.fd];
}

function buildArguments(
  dir: DomainDir,
  definition: DomainDefinition,
  { firmware, persistent, incoming }: QemuFiles,
  { accelerator, clock }: QemuContext,
): string[] {
  const args = qemuArguments(definition, {
    accelerator,
    qmpSocket: QMP_SOCKET,
    serialSocket: SERIAL_SOCKET,
    displaySocket: DISPLAY_SOCKET,
    agentSocket: AGENT_SOCKET,
    redirectionSocket: (deviceId) => `${deviceId}.sock`,
    nowMs: () => clock.now(),
    ...(needsTpm(definition) ? { tpmSocket: TPM_SOCKET } : {}),
    ...(firmware === undefined ? {} : { nvram: persistent.nvram ?? NVRAM, ovmfCode: firmware.code }),
    pathOf: (absolute) => guestPath(dir, absolute),
    tapOf: (deviceId) => tapName(definition.id, deviceId),
  });
  return [...args, ...(incoming === undefined ? [] : ['-incoming', 'defer'])];
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
