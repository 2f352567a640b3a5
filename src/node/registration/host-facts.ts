/** Reads facts about this machine. Only this module of the agent queries the operating system about itself. */
import { readFile } from 'node:fs/promises';
import { arch, availableParallelism, release, totalmem } from 'node:os';

export interface HostFacts {
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Name in Kubernetes: amd64, arm64. */
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
    readTextIfExists('/etc/os-release'),
    readTextIfExists('/etc/machine-id'),
    readTextIfExists('/proc/sys/kernel/random/boot_id'),
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

/** Returns an empty text if the file does not exist, which is common in containers. */
async function readTextIfExists(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}
