/** Which form of discovery a client asks for. kubectl 1.26 to 1.29 know v2beta1, newer ones v2, older ones none. */
import { accepts, parseAccept } from '#engine/tables/accept-header.ts';

export type DiscoveryVersion = 'v2' | 'v2beta1';

/**
 * The best aggregated form that the client names, else plain. As in kube-apiserver, an aggregated form wins over a
 * plain one wherever it stands in the header: nobody names it by accident.
 */
export function negotiateDiscovery(accept: string): DiscoveryVersion | 'plain' {
  if (!accept.includes('APIGroupDiscoveryList')) return 'plain';
  for (const clause of parseAccept(accept)) {
    const { params } = clause;
    if (!accepts(clause, 'json')) continue;
    if (params.get('as') !== 'APIGroupDiscoveryList' || params.get('g') !== 'apidiscovery.k8s.io') continue;
    const version = params.get('v');
    if (version === 'v2' || version === 'v2beta1') return version;
  }
  return 'plain';
}

/** Clients look for these very parameters in the answer, or take it for the plain form. */
export function discoveryContentType(version: DiscoveryVersion | 'plain'): string {
  if (version === 'plain') return 'application/json';
  return `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
}
