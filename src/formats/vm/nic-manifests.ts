/** Builds the interfaces and networks of a description. Pure. */
import type { Interface, Network } from '#api/domain/interface.ts';
import type { Findings } from '#formats/findings.ts';
import type { DescribedNic } from '#formats/machine.ts';
import { quoteText } from '#lib/quote-text.ts';

const POD = 'pod';
/** Linux' rule for names of bridges. */
const BRIDGE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$/;

/** Builds both. `mapped` has `pod` or a bridge of the node for each network of the description. */
export function nicManifests(
  nics: readonly DescribedNic[],
  mapped: ReadonlyMap<string, string>,
  findings: Findings,
): { interfaces: Interface[]; networks: Network[] } {
  let pods = 0;
  const networks = nics.map(({ name, network = POD }): Network => {
    const target = mapped.get(network) ?? network;
    if (target === POD) {
      if (++pods === 2) findings.addError('only one interface can be on the pod network; name bridges for the others');
      return { name, pod: {} };
    }
    if (!BRIDGE.test(target))
      findings.addError(`${quoteText(target)} is not a valid name of a bridge; name a bridge for this network`);
    findings.addNote(`the interface ${name} is on the bridge ${target}, which must exist on the node`);
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
