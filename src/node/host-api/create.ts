/** `create`: a VM in either format, started the way in which those of launcher pods are. */
import { HOST_CODES, type HostAnswer } from '#api/host-api.ts';
import { isRootPort } from '#api/learned-device.ts';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import { learnedFrom } from '#node/definition/learned-from.ts';
import { createDomain } from '#node/domains/create-domain.ts';
import { refused } from '#node/host-api/answers.ts';
import { kvmNotes } from '#node/host-api/create-keys.ts';
import { defineInput, misplaced, refined, toldProblem } from '#node/host-api/define-input.ts';
import type { DeviceEntry } from '#node/host-api/device-entries.ts';
import { learnNow, type HostParts } from '#node/host-api/host-parts.ts';
import { cutNotes } from '#node/host-api/key-rules.ts';
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

async function begin(vm: SentVm, parts: HostParts, signal: AbortSignal): Promise<HostAnswer> {
  const { conf, entries, sent } = vm;
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
    {
      origin: 'host-api',
      check: (definition) => misplaced(entries, definition),
      refine: (definition) => refined(definition, vm),
    },
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
  const notes = cutNotes([
    ...vm.notes,
    ...kvmNotes(sent, capabilities),
    ...missing,
    ...input.placeNotes,
    ...outcome.notes,
    ...outcome.left,
    ...unsentNotes(hypervisor.inspect(vmId)?.definition, entries),
  ]);
  return {
    status: HOST_CODES.done,
    ...(told === undefined ? {} : { vmList: [told] }),
    ...(notes.length === 0 ? {} : { notes }),
  };
}

/** Returns a note for each device that the guest has although nobody sent it. The ports of a chipset are no devices. */
function unsentNotes(definition: DomainDefinition | undefined, entries: readonly DeviceEntry[]): string[] {
  const sent = new Set(entries.map(({ id }) => id));
  const rows = definition === undefined ? [] : learnedFrom(definition);
  return rows
    .filter((row) => !sent.has(row.id) && !isRootPort(row))
    .map(({ id, type, device }) => `the guest has "${id}" (${type}/${device}), too: a device that was sent needs it`);
}
