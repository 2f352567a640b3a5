/** The meaning of a pod's phase. Pure. */

/** Reports whether all containers of the pod have ended, with success or failure, and will not restart. */
export function hasEnded({ status }: { readonly status?: { readonly phase?: string } }): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
