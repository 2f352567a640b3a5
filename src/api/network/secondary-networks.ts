/** Lists the networks of an instance that NetworkAttachmentDefinitions describe. Pure. */
import { interfacesOf, networksOf } from '#api/devices/attached-interfaces.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

interface SecondaryNetwork {
  readonly name: string;
  /** `multus.networkName`. */
  readonly networkName: string;
}

/** Leaves out networks whose interface is unplugged. */
export function secondaryNetworksOf(spec: VmiSpec): SecondaryNetwork[] {
  const unplugged = new Set(interfacesOf(spec).flatMap(({ name, state }) => (state === 'absent' ? [name] : [])));
  return networksOf(spec).flatMap(({ name, multus }) =>
    multus === undefined || unplugged.has(name) ? [] : [{ name, networkName: multus.networkName }],
  );
}
