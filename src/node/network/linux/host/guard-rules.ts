/**
 * The rules that keep the host from being a router for others, in one table that all planes on a machine share. Pure:
 * builds the text for nft.
 *
 * The replies of the outside need forwarding on the interfaces through which they arrive. If somebody else did not
 * switch it on there, only replies and translated connections may pass from these interfaces. Frames between two ports
 * of a foreign bridge, which pass here if br_netfilter is on, are not routed: `bridged` lets them pass.
 */
import { buildDeletion } from '#node/network/linux/host/rule-sets.ts';

export const GUARD_TABLE = 'selfsame_guard';

export interface ForwardingGuard {
  /** Interfaces from which IPv4 is forwarded only because of us. */
  readonly interfaces4: readonly string[];
  readonly interfaces6: readonly string[];
  /** IPv6 is forwarded from all interfaces only because of us. */
  readonly isEverywhere6: boolean;
}

/** Builds what creates the table, or replaces its rules. Keeps the elements of its sets. */
export function buildGuardRules(): string {
  const table = `inet ${GUARD_TABLE}`;
  return `table ${table} {
  set revision { type ifname; }
  set bridges { type ifname; }
  set bridged { type ifname . ifname; }
  set interfaces4 { type ifname; }
  set interfaces6 { type ifname; }
  set everywhere6 { type nf_proto; }
  chain forward { type filter hook forward priority filter - 10; policy accept; }
}
flush chain ${table} forward
table ${table} {
  chain forward {
    ct state established,related accept
    ct status dnat accept
    iifname @bridges accept
    iifname . oifname @bridged accept
    meta nfproto ipv4 iifname @interfaces4 drop
    meta nfproto ipv6 iifname @interfaces6 drop
    meta nfproto @everywhere6 drop
  }
}
`;
}

/**
 * Builds what changes the content of the guard. Another agent may change it at the same time, so only those elements are
 * deleted that were found before. `bridges` are those of this plane, `foreignBridges` all other ones.
 */
export function buildGuardElements(
  { guard, before }: { readonly guard: ForwardingGuard; readonly before: ForwardingGuard },
  bridges: readonly string[],
  foreignBridges: readonly string[],
): string {
  const table = `inet ${GUARD_TABLE}`;
  const add = (set: string, elements: readonly string[]) =>
    elements.length === 0 ? '' : `add element ${table} ${set} { ${elements.join(', ')} }\n`;
  const replace = (set: string, from: readonly string[], to: readonly string[]) => {
    const gone = from.filter((element) => !to.includes(element));
    return buildDeletion('inet', GUARD_TABLE, set, gone) + add(set, to);
  };
  const pairs = foreignBridges.map((name) => `${quote(name)} . ${quote(name)}`);
  const everywhere = ({ isEverywhere6 }: ForwardingGuard) => (isEverywhere6 ? ['ipv6'] : []);
  return [
    add('bridges', bridges.map(quote)),
    add('bridged', pairs),
    replace('interfaces4', before.interfaces4.map(quote), guard.interfaces4.map(quote)),
    replace('interfaces6', before.interfaces6.map(quote), guard.interfaces6.map(quote)),
    replace('everywhere6', everywhere(before), everywhere(guard)),
  ].join('');
}

/** Returns the name of an interface as nft reads it. */
export const quote = (name: string): string => `"${name}"`;
