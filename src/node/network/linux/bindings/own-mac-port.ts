/**
 * Interfaces of plugins that receive only frames to their own MAC address: macvlan. Such an interface has the MAC address
 * of the guest while the guest is connected. It is a port of the bridge of the guest like any other interface, but the
 * bridge keeps frames to the address of a port for itself, so that entry is removed from its table.
 *
 *   silent    the interface has an address of its own; frames to the guest do not arrive
 *   active    the interface has the address of the guest
 *
 * The kernel refuses an address that another macvlan of the same device has. So of the two sides of a migration on one
 * host, at most one is active. Pure.
 */
import { createHash } from 'node:crypto';
import { PodNetworkError } from '#node/network/pod-networks.ts';

/** One device in the output of `ip -details -json link show`. */
export interface LinkDetails {
  readonly ifname: string;
  readonly linkinfo?: { readonly info_kind?: string; readonly info_data?: { readonly mode?: string } };
}

/** The devices of one interface, all in the namespace of the guest. */
interface OwnMacPort {
  /** The macvlan, a port of the bridge. */
  readonly podInterface: string;
  /** The tap, a port of the bridge. */
  readonly tap: string;
  readonly guestMac: string;
}

/** Reports whether an interface needs this binding. Throws a permanent PodNetworkError for one that no guest can use. */
export function hasOwnMacOnly({ ifname, linkinfo }: LinkDetails): boolean {
  const refuse = (problem: string) =>
    new PodNetworkError(`Cannot connect a guest with interface "${ifname}": ${problem}`, { permanent: true });
  switch (linkinfo?.info_kind) {
    case 'macvlan':
      if (linkinfo.info_data?.mode === 'passthru') {
        throw refuse('a macvlan in mode "passthru" has the MAC address of the device of the host; use mode "bridge"');
      }
      return true;
    case 'ipvlan':
      throw refuse('an ipvlan has the MAC address of the device of the host; use the plugin "macvlan" or "bridge"');
    default:
      return false;
  }
}

/** Returns a script for the namespace that connects the guest. May be repeated. */
export function claimMacScript({ podInterface, tap, guestMac }: OwnMacPort): string {
  return [
    'set -e',
    `ip link set dev ${podInterface} address ${guestMac}`,
    // Setting the address has made an entry for the bridge itself; after a repetition there is none.
    `bridge fdb delete ${guestMac} dev ${podInterface} master 2>/dev/null || true`,
    `bridge fdb replace ${guestMac} dev ${tap} master static`,
    '',
  ].join('\n');
}

/** Returns a script for the namespace that disconnects the guest; other hosts and guests may use its address then. */
export function releaseMacScript(podInterface: string, idleMac: string): string {
  return `ip link set dev ${podInterface} address ${idleMac}\n`;
}

/** Returns an address for a silent interface: different in each namespace, because source and target may be on one host. */
export function idleMacOf(namespace: string, podInterface: string): string {
  const hash = createHash('sha256').update(`${namespace} ${podInterface}`).digest('hex').slice(0, 8);
  return `0e:58:${hash.match(/../g)?.join(':')}`;
}
