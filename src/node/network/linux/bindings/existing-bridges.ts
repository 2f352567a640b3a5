/**
 * Checks that the bridges of a configuration exist before its plugins run: the plugin `bridge` creates a missing one, which
 * connects guests with nothing if the name is a typing error. Pure.
 */
import { hostBridgesIn } from '#api/network/definition-config.ts';
import type { LinkDetails } from '#node/network/linux/bindings/own-mac-port.ts';

/**
 * Returns what is wrong, or undefined. `links` are the devices of the host. A bridge to which the plugin gives an address
 * (`isGateway`) may be missing: that is a network of this host, which the plugin makes.
 */
export function findBridgeProblem(config: string, links: readonly LinkDetails[]): string | undefined {
  const kinds = new Map(links.map(({ ifname, linkinfo }) => [ifname, linkinfo?.info_kind]));
  for (const { name, isGateway } of hostBridgesIn(config)) {
    if (kinds.has(name) && kinds.get(name) !== 'bridge') return `"${name}" is not a bridge on this node`;
    if (isGateway || kinds.has(name)) continue;
    return `there is no bridge "${name}" on this node; create it, correct the name in the configuration, or set "isGateway": true there if the plugin should create it`;
  }
  return undefined;
}
