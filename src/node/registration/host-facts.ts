/** What this machine is: the one place of the agent that asks the operating system about itself. */
import { readFile } from 'node:fs/promises';
import { arch, availableParallelism, release, totalmem } from 'node:os';

export interface HostFacts {
  readonly cpus: number;
  readonly memoryBytes: number;
  /** As Kubernetes names it: amd64, arm64. */
  readonly architecture: string;
  readonly kernelVersion: string;
  readonly osImage: string;
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
}

const ARCHITECTURES = new Map([['x64', 'amd64']]);

export async function readHostFacts(): Promise<HostFacts> {
  const [osRelease, machineId, bootId] = await Promise.all([
    textOf('/etc/os-release'),
    textOf('/etc/machine-id'),
    textOf('/proc/sys/kernel/random/boot_id'),
  ]);
  return {
    cpus: availableParallelism(),
    memoryBytes: totalmem(),
    architecture: ARCHITECTURES.get(arch()) ?? arch(),
    kernelVersion: release(),
    osImage: /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(osRelease)?.[1] ?? 'Linux',
    machineId: machineId.trim(),
    systemUuid: machineId.trim(),
    bootId: bootId.trim(),
  };
}

/** Empty where there is none: containers often have no such file. */
async function textOf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
