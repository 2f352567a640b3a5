/**
 * The floor of a migration: the same guest (examples/vm-tpm.yaml: OVMF, TPM, 256 MiB) migrated manually from one QEMU
 * to another on this machine: start the target and its swtpm, `migrate` over a Unix socket, `cont`, `quit`. Nothing is
 * recorded, no API is called, and the EFI variables of the target are not written to disk before it resumes.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '#lib/clock.ts';
import { DomainDir, NVRAM, QMP_SOCKET, TPM_SOCKET, TPM_STATE } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { GUEST_ENVIRONMENT } from '#node/hypervisor/qemu/process/process.ts';
import { QmpClient, type QmpEvent } from '#node/hypervisor/qemu/monitor/qmp.ts';
import { poll } from '#node/hypervisor/qemu/process/timing.ts';

const OVMF = '/usr/share/OVMF/OVMF_CODE_4M.fd';
const VARIABLES = '/usr/share/OVMF/OVMF_VARS_4M.fd';
const CONSOLE = 'console.log';
const MIGRATION_SOCKET = 'migration.sock';
const TIMEOUT_MS = 60_000;
const POLL_MS = 1;

export interface MigrationTimes {
  /** From the call of the target until its guest resumes. */
  readonly totalMs: number;
  /** From the source's event that its guest is stopped. */
  readonly downtimeMs: number;
}

interface Machine {
  readonly dir: DomainDir;
  readonly qemu: ChildProcess;
  readonly swtpm: ChildProcess;
  readonly qmp: QmpClient;
  readonly events: Events;
}

export class ManualGuest {
  readonly #root: string;
  readonly #kernel: { readonly kernelPath: string; readonly initrdPath: string };
  #count = 0;
  #current: Machine | undefined;

  /** `root` is the directory for the files of the guest. */
  constructor(root: string, kernel: { readonly kernelPath: string; readonly initrdPath: string }) {
    this.#root = root;
    this.#kernel = kernel;
  }

  async boot(): Promise<void> {
    const machine = await this.#start([]);
    await machine.qmp.execute('cont');
    await waitUntilBooted(join(machine.dir.run, CONSOLE));
    this.#current = machine;
  }

  async migrate(): Promise<MigrationTimes> {
    const source = this.#machine();
    const from = performance.now();
    const target = await this.#start(['-incoming', 'defer']);
    const capabilities = [{ capability: 'events', state: true }];
    await target.qmp.execute('migrate-set-capabilities', { capabilities });
    const uri = `unix:${join(target.dir.run, MIGRATION_SOCKET)}`;
    await target.qmp.execute('migrate-incoming', { uri });
    await source.qmp.execute('migrate-set-capabilities', { capabilities });
    await source.qmp.execute('migrate-set-parameters', { 'max-bandwidth': 2 ** 40, 'downtime-limit': 300 });
    await source.qmp.execute('migrate', { uri });
    const stopped = await source.events.timeOf('STOP');
    await target.events.timeOf('MIGRATION', 'completed');
    await target.qmp.execute('cont');
    const resumed = performance.now();
    await end(source);
    this.#current = target;
    return { totalMs: resumed - from, downtimeMs: resumed - stopped };
  }

  async stop(): Promise<void> {
    if (this.#current !== undefined) await end(this.#current);
    this.#current = undefined;
  }

  #machine(): Machine {
    if (this.#current === undefined) throw new Error('Cannot migrate manually: the guest does not run');
    return this.#current;
  }

  async #start(more: readonly string[]): Promise<Machine> {
    const dir = new DomainDir(this.#root, `manual-${++this.#count}`);
    await dir.prepare(undefined);
    await copyFile(VARIABLES, join(dir.run, NVRAM));
    const spawnInDir = (command: string, args: readonly string[]) =>
      spawn(command, [...args], { cwd: dir.run, env: GUEST_ENVIRONMENT, stdio: 'ignore' });
    const swtpm = spawnInDir('swtpm', swtpmArguments());
    await poll(systemClock, { timeoutMs: TIMEOUT_MS, everyMs: POLL_MS }, async () =>
      existsSync(join(dir.run, TPM_SOCKET)) ? true : undefined,
    );
    const qemu = spawnInDir('qemu-system-x86_64', [...this.#arguments(), ...more]);
    const socket = await poll(systemClock, { timeoutMs: TIMEOUT_MS, everyMs: POLL_MS }, () =>
      dir.connect(QMP_SOCKET).catch(() => undefined),
    );
    if (socket === undefined) throw new Error('Cannot start a guest manually: QEMU did not open its monitor');
    const events = new Events();
    const qmp = await QmpClient.open(socket, { clock: systemClock, onEvent: (event) => events.record(event) });
    return { dir, qemu, swtpm, qmp, events };
  }

  #arguments(): string[] {
    const { kernelPath, initrdPath } = this.#kernel;
    return [
      ...['-S', '-no-user-config', '-nodefaults', '-display', 'none', '-m', '262136k'],
      ...['-machine', 'pc-q35-7.2,accel=tcg,pflash0=code,pflash1=vars'],
      ...['-blockdev', `driver=file,filename=${OVMF},node-name=code,read-only=on`],
      ...['-blockdev', `driver=file,filename=${NVRAM},node-name=vars`],
      ...['-kernel', kernelPath, '-initrd', initrdPath, '-append', 'console=ttyS0 quiet'],
      ...['-device', 'pcie-root-port,id=rp1,bus=pcie.0,chassis=1,addr=0x1'],
      ...['-netdev', 'user,id=net0', '-device', 'virtio-net-pci,netdev=net0,bus=rp1,addr=0x0'],
      ...['-chardev', `socket,id=ctpm,path=${TPM_SOCKET}`, '-tpmdev', 'emulator,id=tpm0,chardev=ctpm'],
      ...['-device', 'tpm-crb,tpmdev=tpm0', '-serial', `file:${CONSOLE}`],
      ...['-qmp', `unix:${QMP_SOCKET},server=on,wait=off`],
    ];
  }
}

function swtpmArguments(): string[] {
  const state = ['--tpmstate', `dir=${TPM_STATE},mode=0600`, '--ctrl', `type=unixio,path=${TPM_SOCKET},mode=0600`];
  return ['socket', '--tpm2', ...state, '--flags', 'startup-clear', '--terminate'];
}

/** Waits for the line of the built-in guest on its serial console. */
export async function waitUntilBooted(consoleFile: string): Promise<void> {
  const booted = await poll(systemClock, { timeoutMs: TIMEOUT_MS * 3, everyMs: 100 }, async () => {
    const text = await readFile(consoleFile, 'latin1').catch(() => '');
    return text.includes('GUEST END boot') ? true : undefined;
  });
  if (booted === undefined) throw new Error(`Cannot measure: the guest of ${consoleFile} does not boot`);
}

async function end({ qemu, swtpm, qmp, dir }: Machine): Promise<void> {
  qmp.close();
  for (const child of [qemu, swtpm]) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }
  await dir.remove();
}

/** The events of a QEMU, with the time at which each was received. */
class Events {
  readonly #seen: { readonly event: QmpEvent; readonly at: number }[] = [];
  #wake: () => void = () => {};

  record(event: QmpEvent): void {
    this.#seen.push({ event, at: performance.now() });
    this.#wake();
  }

  async timeOf(name: string, status?: string): Promise<number> {
    for (;;) {
      const found = this.#seen.find(
        ({ event }) => event.name === name && (status === undefined || event.data['status'] === status),
      );
      if (found !== undefined) return found.at;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
