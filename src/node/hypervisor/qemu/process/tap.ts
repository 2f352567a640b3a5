/**
 * Tap devices of interfaces on a bridge of this host. Their names are derived from domain and device, so that the next
 * node agent finds them.
 */
import { createHash } from 'node:crypto';
import type { Log } from '#lib/log.ts';
import type { DomainDefinition, InterfaceDevice } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';
import { runProgram } from '#node/hypervisor/qemu/process/run-program.ts';

/** Excludes options of `ip` and paths. */
const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$/;

interface Tap {
  readonly name: string;
  readonly bridge: string;
  /** Queues of the guest's interface; absent for one queue. */
  readonly queues?: number | undefined;
}

/** Returns a name of at most 15 characters, the kernel's limit. */
export function tapName(domainId: string, deviceId: string): string {
  return `ss-${createHash('sha256').update(`${domainId}/${deviceId}`).digest('hex').slice(0, 12)}`;
}

export function tapsOf({ id, devices }: DomainDefinition): Tap[] {
  return devices.flatMap((device) =>
    device.type === 'interface' && device.backend.type === 'bridge'
      ? [{ name: tapName(id, device.id), bridge: device.backend.bridge, ...queuesOf(device) }]
      : [],
  );
}

function queuesOf({ queues }: InterfaceDevice): Pick<Tap, 'queues'> {
  return queues === undefined ? {} : { queues };
}

/** Creates the tap device; replaces one that was left over. */
export async function addTap({ name, bridge, queues }: Tap, user: ProcessUser | undefined): Promise<void> {
  const found = NAME.test(bridge) && (await hasDevice(bridge, 'bridge'));
  if (!found) throw new HypervisorError(`this node has no bridge "${bridge}"`);
  await removeTap(name);
  const owner = user === undefined ? [] : ['user', String(user.uid)];
  await runProgram('ip', [
    'tuntap',
    'add',
    'dev',
    name,
    'mode',
    'tap',
    ...owner,
    ...(queues === undefined ? [] : ['multi_queue']),
  ]);
  try {
    await runProgram('ip', ['link', 'set', 'dev', name, 'master', bridge, 'up']);
  } catch (error) {
    await removeTap(name);
    throw error;
  }
}

/** Asks `ip`, because /sys may show the devices of another network namespace. */
async function hasDevice(name: string, kind?: string): Promise<boolean> {
  const output = await runProgram('ip', ['-json', 'link', 'show', ...(kind === undefined ? [] : ['type', kind])]);
  return (JSON.parse(output || '[]') as { readonly ifname?: string }[]).some(({ ifname }) => ifname === name);
}

/** Does nothing if the device does not exist. */
export async function removeTap(name: string): Promise<void> {
  if (await hasDevice(name)) await runProgram('ip', ['link', 'delete', 'dev', name]);
}

/** Removes the tap devices of an ended domain. A failure must not keep the domain, so it is only logged. */
export async function removeTaps(definition: DomainDefinition, log: Log): Promise<void> {
  for (const { name } of tapsOf(definition)) {
    await removeTap(name).catch((err: unknown) => log.warn({ err }, 'Cannot remove a tap device'));
  }
}
