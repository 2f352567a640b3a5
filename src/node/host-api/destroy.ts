/** `destroy`: a VM of the host API is switched off and forgotten; its images stay. Those that have ended go, too. */
import { HOST_CODES, type HostAnswer } from '#api/host-api.ts';
import { domainOf } from '#node/host-api/answers.ts';
import type { HostParts } from '#node/host-api/host-parts.ts';
import type { SentMap } from '#node/host-api/sent-values.ts';

const INSTEAD = { failed: HOST_CODES.unexpected, instead: 'stop it with virtctl' };

export async function destroy(parameters: SentMap, parts: HostParts): Promise<HostAnswer> {
  const found = domainOf(parameters, parts, INSTEAD);
  if (found.refusal !== undefined) return found.refusal;
  const { id } = found.domain;
  return await parts.turns.take(id, async () => {
    // Another one may have come first.
    const now = domainOf(parameters, parts, INSTEAD);
    if (now.refusal !== undefined) return now.refusal;
    await parts.hypervisor.destroy(id);
    await parts.hypervisor.remove(id);
    parts.book.forget(id);
    await parts.vms.remove(id);
    return { status: HOST_CODES.done };
  });
}
