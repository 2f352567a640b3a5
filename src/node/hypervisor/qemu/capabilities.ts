/** Reads the capabilities of the installed QEMU from a short-lived QEMU without a machine. */
import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import type { Clock } from '#lib/clock.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { Capabilities, MachineType } from '#node/hardware/capabilities.ts';
import type { Accelerator } from '#node/hypervisor/qemu/process/accelerator.ts';
import { GUEST_ENVIRONMENT } from '#node/hypervisor/qemu/process/process.ts';
import { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';

const ARGUMENTS = ['-S', '-nodefaults', '-no-user-config', '-display', 'none', '-qmp', 'stdio'];
/** Machine types that cannot run a guest: the empty one, and one half of a split QEMU. */
const NO_GUESTS = new Set(['none', 'x-remote']);

export async function readCapabilities(binary: string, accelerator: Accelerator, clock: Clock): Promise<Capabilities> {
  const machine = ['-machine', `none,accel=${accelerator}`];
  const child = spawn(binary, [...machine, ...ARGUMENTS], {
    stdio: ['pipe', 'pipe', 'ignore'],
    cwd: '/',
    env: GUEST_ENVIRONMENT,
  });
  const failed = new Promise<never>((_resolve, reject) => {
    child.on('error', (cause) =>
      reject(new HypervisorError(`Cannot start ${binary}: ${cause.message}; install QEMU`, { cause })),
    );
  });
  try {
    const stream = Duplex.from({ readable: child.stdout, writable: child.stdin });
    const qmp = await Promise.race([QmpClient.open(stream, { clock }), failed]);
    const [version, machines, model] = await Promise.all([
      qmp.execute('query-version'),
      qmp.execute('query-machines'),
      // Older versions of QEMU do not have this command.
      qmp.execute('query-cpu-model-expansion', { type: 'full', model: { name: 'max' } }).catch(() => undefined),
    ]);
    qmp.close();
    const cpuFeatures = parseCpuFeatures(model);
    return {
      ...{ accelerator, version: versionText(version), machines: machineTypes(machines) },
      ...(cpuFeatures !== undefined && { cpuFeatures }),
    };
  } finally {
    child.kill('SIGKILL');
  }
}

export function versionText(answer: unknown): string {
  const { major, minor, micro } = (answer as { qemu: { major: number; minor: number; micro: number } }).qemu;
  return `QEMU ${major}.${minor}.${micro}`;
}

/** Returns the features of the best CPU model of this host, or undefined if QEMU did not report them. */
function parseCpuFeatures(answer: unknown): string[] | undefined {
  const { props } = (answer as { model?: { props?: Record<string, unknown> } } | undefined)?.model ?? {};
  if (props === undefined) return undefined;
  return Object.keys(props).filter((name) => props[name] === true);
}

interface MachineInfo {
  readonly name: string;
  readonly alias?: string;
  readonly 'cpu-max': number;
  readonly deprecated?: boolean;
}

export function machineTypes(answer: unknown): MachineType[] {
  return (answer as MachineInfo[])
    .filter(({ name }) => !NO_GUESTS.has(name))
    .map((machine) => ({
      name: machine.name,
      ...(machine.alias === undefined ? {} : { alias: machine.alias }),
      deprecated: machine.deprecated ?? false,
      maxCpus: machine['cpu-max'],
    }));
}
