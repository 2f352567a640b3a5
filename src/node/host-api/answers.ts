/** Answers of the host API: a code and its message, and behind a colon what is wrong and what would be right. */
import { HOST_CODES, type HostAnswer, type HostStatus } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import type { HostParts } from '#node/host-api/host-parts.ts';
import { shown, type SentMap } from '#node/host-api/sent-values.ts';
import { missingParameters, vmIdOf } from '#node/host-api/vm-conf.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';

const MAX_DETAIL = 4096;

export function refused({ code, message }: HostStatus, ...details: readonly string[]): HostAnswer {
  const detail = details.join('; ');
  const text = detail.length > MAX_DETAIL ? `${detail.slice(0, MAX_DETAIL)}…` : detail;
  return { status: { code, message: text === '' ? message : `${message}: ${text}` } };
}

/** A VM of the host API that a call is about, or why there is none. */
export function domainOf(
  sent: SentMap,
  { hypervisor }: Pick<HostParts, 'hypervisor'>,
  { failed, instead }: { readonly failed: HostStatus; readonly instead: string },
): { readonly domain: Domain; readonly refusal?: undefined } | { readonly refusal: HostAnswer } {
  const missing = missingParameters(sent, ['vmId']);
  if (missing !== undefined) return { refusal: { status: missing } };
  const vmId = vmIdOf(sent['vmId']);
  const domain = vmId === undefined ? undefined : hypervisor.get(vmId);
  if (domain === undefined) return { refusal: refused(HOST_CODES.noVm, `vmId ${shown(sent['vmId'])}`) };
  if (domain.origin === 'host-api') return { domain };
  return { refusal: refused(failed, `"${domain.name}" is run by a launcher pod; ${instead}`) };
}

/** The device that a call is about. */
export function mapIn(
  sent: SentMap,
  key: string,
  failed: HostStatus,
): { readonly map: SentMap; readonly refusal?: undefined } | { readonly refusal: HostAnswer } {
  const missing = missingParameters(sent, [key]);
  if (missing !== undefined) return { refusal: { status: missing } };
  const map = sent[key];
  return isRecord(map) ? { map } : { refusal: refused(failed, `${key}: ${shown(map)} is no map`) };
}
