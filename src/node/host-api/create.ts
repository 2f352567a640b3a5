/** `create`: a VM in either format, started the way in which those of launcher pods are. */
import { HOST_CODES, type HostAnswer } from '#api/host-api.ts';
import { createDomain } from '#node/domains/create-domain.ts';
import { refused } from '#node/host-api/answers.ts';
import { defineInput, misplaced, toldProblem } from '#node/host-api/define-input.ts';
import { learnNow, type HostParts } from '#node/host-api/host-parts.ts';
import { findKernel, findMedia } from '#node/host-api/media.ts';
import type { SentMap } from '#node/host-api/sent-values.ts';
import { readVm, type SentVm } from '#node/host-api/sent-vm.ts';
import { toldVm } from '#node/host-api/told-vm.ts';
import { missingParameters, vmIdOf } from '#node/host-api/vm-conf.ts';

export async function create(
  parameters: SentMap,
  parts: HostParts,
  { signal }: { readonly signal: AbortSignal },
): Promise<HostAnswer> {
  const missing = missingParameters(parameters);
  if (missing !== undefined) return { status: missing };
  const asked = vmIdOf(parameters['vmId']);
  if (asked !== undefined && parts.hypervisor.get(asked) !== undefined) return refused(HOST_CODES.exists, asked);
  const vm = readVm(parameters);
  if ('faults' in vm) return refused(HOST_CODES.createFailed, ...vm.faults);
  const { vmId } = vm.conf;
  return await parts.turns.take(vmId, async () => {
    if (parts.hypervisor.get(vmId) !== undefined) return refused(HOST_CODES.exists, vmId);
    return await begin(vm, parts, signal);
  });
}

async function begin({ conf, entries, sent }: SentVm, parts: HostParts, signal: AbortSignal): Promise<HostAnswer> {
  const { hypervisor, capabilities, images, vms } = parts;
  const { vmId, vmName } = conf;
  const { media, notes: missing, faults: mediaFaults } = await findMedia(entries, images);
  const faults = [...mediaFaults];
  const kernel = await findKernel(sent, images, faults);
  if (faults.length > 0) return refused(HOST_CODES.createFailed, ...faults);

  await vms.save({ vmId, vmName, sent, entries });
  const input = { ...defineInput({ conf, entries, media, kernel }), capabilities };
  const outcome = await createDomain(
    input,
    { origin: 'host-api', check: (definition) => misplaced(entries, definition) },
    { hypervisor, signal },
  ).catch(async (error: unknown) => {
    await vms.remove(vmId);
    throw error;
  });
  if (outcome.is !== 'created') {
    await vms.remove(vmId);
    const why = outcome.is === 'refused' ? outcome.problems.map((it) => toldProblem(it, entries)) : [outcome.message];
    return refused(HOST_CODES.createFailed, ...why);
  }
  await learnNow(vmId, parts);
  const domain = hypervisor.get(vmId);
  const told = domain && toldVm(domain, parts);
  const notes = [...missing, ...outcome.notes];
  return {
    status: HOST_CODES.done,
    ...(told === undefined ? {} : { vmList: [told] }),
    ...(notes.length === 0 ? {} : { notes }),
  };
}
