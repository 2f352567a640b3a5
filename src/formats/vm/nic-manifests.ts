/** Interfaces of a description as interfaces and networks of the API. Pure. */
import type { Interface, Network } from '#api/domain/interface.ts';
import { quoted, type Findings } from '#formats/faults.ts';
import type { DescribedNic } from '#formats/machine.ts';

const POD = 'pod';
/** As Linux takes them. */
const BRIDGE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/;

/** `mapped`: by network of the description, `pod` or a bridge of the node. */
export function nicManifests(
  nics: readonly DescribedNic[],
  mapped: ReadonlyMap<string, string>,
  findings: Findings,
): { interfaces: Interface[]; networks: Network[] } {
  let pods = 0;
  const networks = nics.map(({ name, network = POD }): Network => {
    const target = mapped.get(network) ?? network;
    if (target === POD) {
      if (++pods === 2)
        findings.fault('only one interface can be in the network of the pod; name bridges for the others');
      return { name, pod: {} };
    }
    if (!BRIDGE.test(target))
      findings.fault(`the network ${quoted(target)} cannot be the name of a bridge; name one for it`);
    findings.note(`the interface ${name} is on the bridge ${target}, which must be there on the node`);
    return { name, multus: { networkName: target } };
  });
  const interfaces = nics.map(({ name, model, mac, bootOrder, plugged }, i): Interface => ({
    name,
    model,
    ...(mac !== undefined && { macAddress: mac }),
    ...(bootOrder !== undefined && plugged && { bootOrder }),
    ...(!plugged && { state: 'absent' }),
    ...(networks[i]?.pod === undefined ? { bridge: {} } : { masquerade: {} }),
  }));
  return { interfaces, networks };
}
