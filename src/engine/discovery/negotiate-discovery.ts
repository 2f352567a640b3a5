/**
 * Negotiates the form of discovery documents. kubectl 1.26 to 1.29 support v2beta1, newer ones v2, older ones neither.
 */
import { accepts, parseAccept } from '#engine/request/accept-header.ts';

export type DiscoveryVersion = 'v2' | 'v2beta1';

/**
 * Returns the best aggregated form that the client accepts, else plain. As in kube-apiserver, an aggregated form takes
 * precedence over plain in any order: no client requests it by accident.
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

/** Clients check these exact parameters in the response, and otherwise treat it as plain. */
export function discoveryContentType(version: DiscoveryVersion | 'plain'): string {
  if (version === 'plain') return 'application/json';
  return `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
}
