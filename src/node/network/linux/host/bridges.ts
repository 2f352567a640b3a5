/**
 * The two bridges of a network on a host. `bridge` has the gateway addresses. `silentBridge` is down, which disables its
 * ports: the kernel drops every frame that enters or leaves through them, whatever the rules say, while the guest's end
 * keeps its carrier. Creation is not atomic, but every step may be repeated, also by another agent in the meantime.
 */
import { formatIpAddress, type IpAddress } from '#lib/ip-address.ts';
import { readSettings, writeSettings, type RunOnHost } from '#node/network/linux/host/host-commands.ts';
import type { NetworkPlan } from '#node/network/linux/network-plan.ts';

interface Device {
  readonly ifname: string;
  readonly address: string;
  readonly mtu: number;
  readonly flags: readonly string[];
  readonly linkinfo?: {
    readonly info_kind?: string;
    readonly info_data?: Readonly<Record<string, unknown>>;
  };
  readonly addr_info?: readonly { readonly local?: string; readonly prefixlen?: number; readonly scope?: string }[];
}

/** Creates both bridges, or repairs them. */
export async function ensureBridges(run: RunOnHost, plan: NetworkPlan): Promise<void> {
  const found = await readDevices(run);
  await ensureBridge(run, plan.bridge, plan.gatewayMac, found);
  await ensureBridge(run, plan.silentBridge, undefined, found);
  await writeChanged(run, [...bridgeSettings(plan), [`ipv6/conf/${plan.silentBridge}/disable_ipv6`, '1']]);
  const devices = await readDevices(run);
  const bridge = devices.find(({ ifname }) => ifname === plan.bridge);
  if (bridge?.mtu !== plan.mtu) await run('ip', ['link', 'set', plan.bridge, 'mtu', String(plan.mtu)]);
  if (isUp(devices, plan.silentBridge)) await run('ip', ['link', 'set', plan.silentBridge, 'down']);
  if (!isUp(devices, plan.bridge)) await run('ip', ['link', 'set', plan.bridge, 'up']);
  await ensureAddresses(run, plan, bridge?.addr_info ?? []);
}

/** Removes both bridges. Their ports stay, without a bridge. */
export async function removeBridges(run: RunOnHost, { bridge, silentBridge }: NetworkPlan): Promise<void> {
  const devices = await readDevices(run);
  for (const name of [bridge, silentBridge]) {
    if (devices.some(({ ifname }) => ifname === name)) await run('ip', ['link', 'delete', name, 'type', 'bridge']);
  }
}

/** Returns the names of all bridges of the host. */
export async function listBridges(run: RunOnHost): Promise<string[]> {
  return (await readDevices(run)).map(({ ifname }) => ifname);
}

async function readDevices(run: RunOnHost): Promise<Device[]> {
  const text = await run('ip', ['-j', '-d', 'address', 'show', 'type', 'bridge']);
  // ip prints an empty object for each device that it leaves out.
  const devices = text.trim() === '' ? [] : (JSON.parse(text) as Partial<Device>[]);
  return devices.filter((device): device is Device => device.ifname !== undefined);
}

const isUp = (devices: readonly Device[], name: string) =>
  devices.some(({ ifname, flags }) => ifname === name && flags.includes('UP'));

const OPTIONS = { stp_state: 0, forward_delay: 0, mcast_snooping: 0 };

async function ensureBridge(
  run: RunOnHost,
  name: string,
  mac: string | undefined,
  devices: readonly Device[],
): Promise<void> {
  const options = Object.entries(OPTIONS).flatMap(([option, value]) => [option, String(value)]);
  const address = mac === undefined ? [] : ['address', mac];
  const device = devices.find(({ ifname }) => ifname === name);
  if (device === undefined) {
    try {
      await run('ip', ['link', 'add', name, ...address, 'type', 'bridge', ...options]);
    } catch (error) {
      // Another agent may have created it in the meantime; a device that is not a bridge fails in the next step.
      if (!/File exists/.test((error as Error).message)) throw error;
      await run('ip', ['link', 'set', name, 'type', 'bridge', ...options]);
    }
    return;
  }
  const data = device.linkinfo?.info_data ?? {};
  if (Object.entries(OPTIONS).some(([option, value]) => Number(data[option]) !== value)) {
    await run('ip', ['link', 'set', name, 'type', 'bridge', ...options]);
  }
  if (mac !== undefined && device.address !== mac) await run('ip', ['link', 'set', name, 'address', mac]);
}

/** Returns the settings of the bridge; they must be in place before it gets addresses. */
function bridgeSettings({ bridge, subnets }: NetworkPlan): [string, string][] {
  const has6 = subnets.some(({ address }) => address.family === 6);
  return [
    // Answers ARP only for the gateway, not for other addresses of the host.
    [`ipv4/conf/${bridge}/arp_ignore`, '1'],
    [`ipv4/conf/${bridge}/arp_announce`, '2'],
    [`ipv6/conf/${bridge}/disable_ipv6`, has6 ? '0' : '1'],
    // The gateway exists on every host, so it must not look for its own duplicates.
    [`ipv6/conf/${bridge}/accept_dad`, '0'],
    [`ipv6/conf/${bridge}/dad_transmits`, '0'],
    [`ipv6/conf/${bridge}/accept_ra`, '0'],
    [`ipv6/conf/${bridge}/autoconf`, '0'],
    // The link-local address follows from the MAC address, so that it is the same on every host.
    [`ipv6/conf/${bridge}/addr_gen_mode`, '0'],
  ];
}

/** Writes those settings that exist (a kernel may lack IPv6) and have another value. */
async function writeChanged(run: RunOnHost, settings: readonly [string, string][]): Promise<void> {
  const found = await readSettings(
    run,
    settings.map(([path]) => path),
  );
  await writeSettings(
    run,
    settings.filter(([path, value]) => found.has(path) && found.get(path) !== value),
  );
}

async function ensureAddresses(
  run: RunOnHost,
  { bridge, subnets, gateways }: NetworkPlan,
  present: NonNullable<Device['addr_info']>,
): Promise<void> {
  const wanted = gateways.map((gateway, i) => ({ gateway, prefix: subnets[i]?.prefix ?? 0 }));
  const isWanted = (local: string | undefined, length: number | undefined) =>
    wanted.some(({ gateway, prefix }) => formatIpAddress(gateway) === local && prefix === length);
  for (const { local, prefixlen, scope } of present) {
    if (scope === 'link' || isWanted(local, prefixlen)) continue;
    await run('ip', ['address', 'delete', `${local}/${prefixlen}`, 'dev', bridge]);
  }
  for (const { gateway, prefix } of wanted) {
    const isPresent = present.some((p) => p.local === formatIpAddress(gateway) && p.prefixlen === prefix);
    if (!isPresent) await run('ip', addressArguments(bridge, gateway, prefix));
  }
}

function addressArguments(bridge: string, gateway: IpAddress, prefix: number): string[] {
  const options = gateway.family === 6 ? ['nodad'] : ['broadcast', '+'];
  return ['address', 'replace', `${formatIpAddress(gateway)}/${prefix}`, 'dev', bridge, ...options];
}
