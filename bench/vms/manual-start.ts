/**
 * The floor of a start: the command of a guest of the plane, started manually. Its arguments are
 * read from /proc of that guest; the files that QEMU needs are created before the measurement.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { mkdir, open, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { systemClock } from '#lib/clock.ts';
import { DomainDir, QMP_SOCKET } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { GUEST_ENVIRONMENT } from '#node/hypervisor/qemu/process/process.ts';
import { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';

const SOCKET_TIMEOUT_MS = 30_000;
const POLL_MS = 1;

export interface GuestCommand {
  readonly words: readonly string[];
  /** Disks that exist as long as the guest: name to size. */
  readonly volumes: ReadonlyMap<string, number>;
}

/** Reads the command of a running guest. */
export async function readGuestCommand(pid: number): Promise<GuestCommand> {
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
  const volumesDir = join(dirname(readlinkSync(`/proc/${pid}/cwd`)), 'volumes');
  const names = await readdir(volumesDir).catch(() => []);
  const sizes = names.map(async (name) => [name, (await stat(join(volumesDir, name))).size] as const);
  return {
    words,
    volumes: new Map(await Promise.all(sizes)),
  };
}

/** Returns the milliseconds from the call of the program until QEMU has answered `cont`. The guest is killed then. */
export async function startManually(command: GuestCommand, root: string, name: string): Promise<number> {
  const { words, volumes } = command;
  const dir = new DomainDir(root, name);
  await dir.prepare(undefined);
  await mkdir(join(dir.path, 'volumes'), { mode: 0o711 });
  for (const [file, bytes] of volumes) await makeDisk(join(dir.path, 'volumes', file), bytes);
  const log = await dir.openLog('qemu.log');

  const from = performance.now();
  const child = spawn(words[0]!, words.slice(1), {
    cwd: dir.run,
    env: GUEST_ENVIRONMENT,
    stdio: ['ignore', log.fd, log.fd],
  });
  try {
    const socket = await poll(systemClock, { timeoutMs: SOCKET_TIMEOUT_MS, everyMs: POLL_MS }, () =>
      hasExited(child)
        ? Promise.reject(new Error('Cannot connect to QEMU: its process has exited'))
        : dir.connect(QMP_SOCKET).catch(() => undefined),
    );
    if (socket === undefined)
      throw new Error(`Cannot connect to QEMU: it did not open its monitor within ${SOCKET_TIMEOUT_MS} ms`);
    const qmp = await QmpClient.open(socket, { clock: systemClock });
    await qmp.execute('cont');
    const ms = performance.now() - from;
    qmp.close();
    return ms;
  } catch (cause) {
    throw new Error(`Cannot start a guest manually; QEMU printed: ${await dir.readLog('qemu.log')}`, { cause });
  } finally {
    if (!hasExited(child)) {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }
    await log.close();
    await dir.remove();
  }
}

async function makeDisk(path: string, bytes: number): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  await file.truncate(bytes);
  await file.close();
}

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
