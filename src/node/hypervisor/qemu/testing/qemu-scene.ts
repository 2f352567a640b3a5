/** A hypervisor with real guests in its own directory, and what a test can do to its guests from outside. */
import { accessSync, constants } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { ConformanceScene } from '#node/hypervisor/testing/conformance.ts';
import type { DomainRecord, StartedProcesses } from '#node/hypervisor/qemu/record/domain-record.ts';
import { DetachedProcess } from '#node/hypervisor/qemu/process/process.ts';
import { Sandboxes } from '#node/hypervisor/qemu/sandbox/sandbox.ts';
import { createQemuHypervisor, type QemuHypervisorOptions } from '#node/hypervisor/qemu/qemu-hypervisor.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';

const GONE_MS = 10_000;
/** More than QEMU copies in one step, at any speed. */
const DISK_BYTES = 8 * 2 ** 20;

/** Guests run in sandboxes if the tests run as root. */
export const isSandboxed = process.getuid?.() === 0;

/** Returns why real guests cannot run here, or false if they can. */
export function qemuSkipReason(): string | false {
  for (const path of ['/usr/bin/qemu-system-x86_64', '/usr/bin/swtpm', '/usr/share/OVMF/OVMF_CODE_4M.fd']) {
    try {
      accessSync(path, constants.R_OK);
    } catch {
      return `${path} is not installed`;
    }
  }
  return false;
}

export function openQemu(nodeDir: string, options: Partial<QemuHypervisorOptions> = {}): Hypervisor {
  const dir = join(nodeDir, 'domains');
  return createQemuHypervisor({
    dir,
    accel: 'tcg',
    sandboxed: isSandboxed,
    clock: systemClock,
    log: silentLog,
    ...options,
  });
}

export interface QemuScene extends ConformanceScene {
  readonly nodeDir: string;
  readonly secondDir: string;
  record(id: string): Promise<DomainRecord & { started: StartedProcesses }>;
  /** Connects directly to the serial port, without a hypervisor. */
  openSerialPort(id: string): Socket;
}

/** Opens a scene in a directory that is closed to other users: guests must be able to open their files anyway. */
export async function qemuScene(): Promise<QemuScene> {
  const root = await mkdtemp(join(tmpdir(), 'selfsame-qemu-'));
  await chmod(root, 0o700);
  const nodeDir = join(root, 'node');
  await mkdir(nodeDir, { mode: 0o711 });
  const secondDir = join(root, 'second');
  await mkdir(secondDir, { mode: 0o711 });
  const opened: Hypervisor[] = [openQemu(nodeDir)];
  const openedSecond: Hypervisor[] = [];
  const ids = new Set<string>();
  const hypervisor = opened[0] as Hypervisor;
  await hypervisor.adopt();

  const record = (id: string) => readRecord(nodeDir, id);
  const killGuest = (id: string) => killIn(nodeDir, id);
  const killAtSecond = (id: string) => killIn(secondDir, id);
  const openSecond = async () => {
    const next = openQemu(secondDir);
    openedSecond.push(next);
    return next;
  };
  const reopen = async (meanwhile?: () => Promise<void>, options: Partial<QemuHypervisorOptions> = {}) => {
    await opened.at(-1)?.close();
    await meanwhile?.();
    const next = openQemu(nodeDir, options);
    opened.push(next);
    return next;
  };
  const definition = (overrides?: Partial<DomainDefinition>) => {
    const made = aDefinition(overrides);
    ids.add(made.id);
    return made;
  };
  let copies = 0;
  let disks = 0;
  return {
    hypervisor,
    nodeDir,
    record,
    killGuest,
    secondDir,
    killAtSecond,
    async second() {
      if (openedSecond.length === 0) await (await openSecond()).adopt();
      return openedSecond.at(-1) as Hypervisor;
    },
    async reopenSecond() {
      await openedSecond.at(-1)?.close();
      return openSecond();
    },
    shutsDownOnPowerButton: false,
    echoesInput: false,
    reopen,
    reopenSlow: () => reopen(undefined, { copyBytesPerSecond: 1 }),
    definition,
    async definitionWithDisks() {
      const disks = ['first', 'second'].map(async (name, i) => {
        const path = await guestFile(nodeDir, `volumes/${name}/disk.img`, Buffer.alloc(DISK_BYTES, name));
        return aDisk(name, 2 + i, { path, format: 'raw' });
      });
      return definition({ devices: [...aDefinition().devices, ...(await Promise.all(disks))] });
    },
    diskFile: () => guestFile(nodeDir, `volumes/${disks++}/disk.img`, Buffer.alloc(2 ** 20)),
    copyFile: () => guestFile(nodeDir, `snapshots/${copies++}/disk.img`, Buffer.alloc(0)),
    openSerialPort: (id) => {
      const line = connect(join(nodeDir, 'domains', id, 'run', 'serial.sock'));
      // The connection breaks when the guest ends; the test notices that by the output.
      line.on('error', () => undefined);
      return line;
    },
    async end() {
      await opened.at(-1)?.close();
      await openedSecond.at(-1)?.close();
      for (const kill of [killGuest, killAtSecond]) {
        for (const id of ids) await kill(id).catch(() => undefined);
      }
      for (const dir of [nodeDir, secondDir]) await removeSandboxes(dir);
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Removes the sandboxes of guests that were killed, so that their directories can be removed. */
export async function removeSandboxes(nodeDir: string): Promise<void> {
  const sandboxes = new Sandboxes(join(nodeDir, 'domains'), { runcBinary: 'runc', clock: systemClock });
  for (const id of await sandboxes.list()) await sandboxes.remove(id);
}

type StartedRecord = Awaited<ReturnType<QemuScene['record']>>;

async function readRecord(dir: string, id: string): Promise<StartedRecord> {
  return JSON.parse(await readFile(join(dir, 'domains', id, 'domain.json'), 'utf8')) as StartedRecord;
}

async function killIn(dir: string, id: string): Promise<void> {
  const qemu = new DetachedProcess((await readRecord(dir, id)).started.qemu, systemClock);
  await qemu.kill('SIGKILL');
  await qemu.waitForExit(GONE_MS);
}

/** Creates a file that only root can read. */
export async function guestFile(nodeDir: string, name: string, content: Buffer): Promise<string> {
  const path = join(nodeDir, name);
  await mkdir(dirname(path), { recursive: true, mode: 0o711 });
  await writeFile(path, content, { mode: 0o600 });
  return path;
}
