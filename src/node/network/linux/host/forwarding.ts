/**
 * Forwarding for the guests of a network, and for nobody else. Pure; the settings are below /proc/sys/net.
 *
 * Findings (Linux 6.18, tested by host-side.test.ts):
 * - IPv4: the kernel asks only the interface through which a packet arrives (ipv4/conf/NAME/forwarding). The bridge of
 *   the guests needs it, and each interface through which replies arrive. The global switch stays as it is.
 * - IPv6: ipv6/conf/NAME/forwarding does not forward anything; the kernel asks ipv6/conf/all/forwarding, or, since
 *   Linux 6.17, ipv6/conf/NAME/force_forwarding of the interface through which a packet arrives. If the latter exists,
 *   the global switch stays as it is, and the host goes on to accept router advertisements.
 * - Otherwise ipv6/conf/all/forwarding is needed. It switches off router advertisements where accept_ra is 1, so these
 *   interfaces get 2 first. Interfaces that appear later keep the default of the machine.
 *
 * An interface is guarded (guard-rules.ts) if forwarding was off before us. Who switched it on cannot be read from the
 * kernel, so the guarded interfaces are remembered, in the guard itself and in a file. If the global switch is on, then
 * somebody else has made this host a router (Docker, an administrator), and nothing is guarded. Otherwise an interface
 * stays guarded as long as it exists: it may be another plane that needs it.
 */
import type { ForwardingGuard } from '#node/network/linux/host/guard-rules.ts';

/** The patterns of all settings that decideForwarding reads. */
export const FORWARDING_SETTINGS = [
  'ipv4/conf/*/forwarding',
  'ipv6/conf/*/forwarding',
  'ipv6/conf/*/force_forwarding',
  'ipv6/conf/*/accept_ra',
];

interface ForwardingWorld {
  readonly settings: ReadonlyMap<string, string>;
  /** The bridge of the guests. */
  readonly bridge: string;
  /** The families of their subnets. */
  readonly families: readonly (4 | 6)[];
  /** Interfaces with routes to the outside. */
  readonly outside4: readonly string[];
  readonly outside6: readonly string[];
  /** All that was guarded before. */
  readonly remembered: ForwardingGuard;
}

interface ForwardingPlan {
  /** Must be in force before the settings are written. */
  readonly guard: ForwardingGuard;
  readonly settings: readonly (readonly [path: string, value: string])[];
}

export function decideForwarding(world: ForwardingWorld): ForwardingPlan {
  const four = decide4(world);
  const six = decide6(world);
  return {
    guard: { interfaces4: four.guarded, interfaces6: six.guarded, isEverywhere6: six.isEverywhere },
    settings: [...four.settings, ...six.settings],
  };
}

type Setting = readonly [string, string];

function decide4({ settings, bridge, families, outside4, remembered }: ForwardingWorld) {
  const path = (name: string) => `ipv4/conf/${name}/forwarding`;
  const isRouter = settings.get(path('all')) === '1';
  return decideInterfaces(settings, path, {
    isRouter,
    bridge,
    outside: families.includes(4) ? outside4 : [],
    isNeeded: families.includes(4),
    remembered: remembered.interfaces4,
  });
}

function decide6(world: ForwardingWorld): { guarded: string[]; settings: Setting[]; isEverywhere: boolean } {
  const { settings, bridge, families, outside6, remembered } = world;
  const isOn = settings.get('ipv6/conf/all/forwarding') === '1';
  const isRouter = isOn && !remembered.isEverywhere6;
  const isNeeded = families.includes(6) && !isRouter;
  const force = (name: string) => `ipv6/conf/${name}/force_forwarding`;
  const hasForce = settings.has(force('all'));
  const interfaces = decideInterfaces(settings, force, {
    isRouter,
    isNeeded: isNeeded && hasForce,
    bridge,
    outside: isNeeded && hasForce ? outside6 : [],
    remembered: remembered.interfaces6,
  });
  if (!isNeeded || hasForce) return { ...interfaces, isEverywhere: isOn && !isRouter };
  const switched: Setting[] = isOn ? [] : [['ipv6/conf/all/forwarding', '1']];
  return { guarded: [], settings: [...acceptRouters(settings, bridge), ...switched], isEverywhere: true };
}

/** Returns the settings that keep interfaces accepting router advertisements when forwarding is on. */
function acceptRouters(settings: ReadonlyMap<string, string>, bridge: string): Setting[] {
  return [...settings]
    .filter(([path, value]) => path.endsWith('/accept_ra') && value === '1')
    .map(([path]) => path)
    .filter((path) => !['all', 'default', 'lo', bridge].includes(path.split('/')[2] ?? ''))
    .map((path) => [path, '2'] as const);
}

interface InterfaceOptions {
  readonly isRouter: boolean;
  readonly isNeeded: boolean;
  readonly bridge: string;
  readonly outside: readonly string[];
  readonly remembered: readonly string[];
}

function decideInterfaces(
  settings: ReadonlyMap<string, string>,
  path: (name: string) => string,
  { isRouter, isNeeded, bridge, outside, remembered }: InterfaceOptions,
): { guarded: string[]; settings: Setting[] } {
  const isOff = (name: string) => settings.get(path(name)) === '0';
  const guarded = [...new Set([...remembered, ...outside.filter(isOff)])].filter((name) => settings.has(path(name)));
  return {
    guarded: isRouter ? [] : guarded.sort(),
    settings: (isNeeded ? [bridge, ...outside] : []).filter(isOff).map((name) => [path(name), '1'] as const),
  };
}
