/**
 * The verb `destroy`: powers off a VM of the host API, also one that has ended, and removes its record. Its images
 * stay.
 */
import { HOST_CODES, type HostAnswer } from '#api/host-api.ts';
import { findHostDomain } from '#node/host-api/answers.ts';
import type { HostParts } from '#node/host-api/host-parts.ts';
import type { SentMap } from '#node/host-api/sent/sent-values.ts';

const REFUSAL = { failed: HOST_CODES.unexpected, advice: 'stop it with virtctl' };

export async function destroyHostVm(parameters: SentMap, parts: HostParts): Promise<HostAnswer> {
  const found = findHostDomain(parameters, parts, REFUSAL);
  if (found.refusal !== undefined) return found.refusal;
  const { id } = found.domain;
  return await parts.turns.run(id, async () => {
    // An earlier call in the queue may have destroyed it.
    const now = findHostDomain(parameters, parts, REFUSAL);
    if (now.refusal !== undefined) return now.refusal;
    await parts.hypervisor.destroy(id);
    await parts.hypervisor.remove(id);
    parts.readings.forget(id);
    await parts.vms.remove(id);
    return { status: HOST_CODES.done };
  });
}
