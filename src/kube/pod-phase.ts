/** What the phase of a pod means. Pure. */

/** It has ended for good, one way or the other. */
export function hasEnded({ status }: { readonly status?: { readonly phase?: string } }): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
