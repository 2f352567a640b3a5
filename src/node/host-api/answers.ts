/**
 * Refusals of the host API: oVirt's code and message, then a colon and our details about the error and the accepted
 * values.
 */
import { HOST_CODES, type HostAnswer, type HostStatus } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import type { HostParts } from '#node/host-api/host-parts.ts';
import { quoteSentValue, type SentMap } from '#node/host-api/sent/sent-values.ts';
import { checkRequired, readVmId } from '#node/host-api/sent/vm-conf.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';

const MAX_DETAIL = 4096;

export function refuseCall({ code, message }: HostStatus, ...details: readonly string[]): HostAnswer {
  const detail = details.join('; ');
  const text = detail.length > MAX_DETAIL ? `${detail.slice(0, MAX_DETAIL)}…` : detail;
  return { status: { code, message: text === '' ? message : `${message}: ${text}` } };
}

/**
 * Returns the VM of the host API that `vmId` names, or a refusal if there is none or if it belongs to a launcher pod.
 */
export function findHostDomain(
  sent: SentMap,
  { hypervisor }: Pick<HostParts, 'hypervisor'>,
  { failed, advice }: { readonly failed: HostStatus; readonly advice: string },
): { readonly domain: DomainInfo; readonly refusal?: undefined } | { readonly refusal: HostAnswer } {
  const missing = checkRequired(sent, ['vmId']);
  if (missing !== undefined) return { refusal: { status: missing } };
  const vmId = readVmId(sent['vmId']);
  const domain = vmId === undefined ? undefined : hypervisor.get(vmId);
  if (domain === undefined) return { refusal: refuseCall(HOST_CODES.noVm, `vmId ${quoteSentValue(sent['vmId'])}`) };
  if (domain.origin === 'host-api') return { domain };
  return { refusal: refuseCall(failed, `"${domain.name}" belongs to a launcher pod; ${advice}`) };
}

/** Returns the parameter `key`, which must be a map, or a refusal. */
export function findMapParameter(
  sent: SentMap,
  key: string,
  failed: HostStatus,
): { readonly map: SentMap; readonly refusal?: undefined } | { readonly refusal: HostAnswer } {
  const missing = checkRequired(sent, [key]);
  if (missing !== undefined) return { refusal: { status: missing } };
  const map = sent[key];
  return isRecord(map) ? { map } : { refusal: refuseCall(failed, `${key}: ${quoteSentValue(map)}; expected a map`) };
}
