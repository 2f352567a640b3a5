/** The verb `create`: starts a VM, sent in the old or new format, in the same way as a VM of a launcher pod. */
import { HOST_CODES, type HostAnswer } from '#api/host-api.ts';
import { isRootPort } from '#api/devices/learned-device.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { toLearnedDevices } from '#node/hardware/to-learned-devices.ts';
import { createDomain } from '#node/guests/create-domain.ts';
import { refuseCall } from '#node/host-api/answers.ts';
import { noteAccelerator } from '#node/host-api/sent/create-keys.ts';
import {
  buildDefineInput,
  findMisplacedDevices,
  refineDefinition,
  describeFieldError,
} from '#node/host-api/definition/define-input.ts';
import type { DeviceEntry } from '#node/host-api/sent/device-entries.ts';
import { refreshDevices, type HostParts } from '#node/host-api/host-parts.ts';
import { limitNotes } from '#node/host-api/sent/key-rules.ts';
import { findKernel, findMedia } from '#node/host-api/definition/media.ts';
import type { SentMap } from '#node/host-api/sent/sent-values.ts';
import { parseSentVm, type SentVm } from '#node/host-api/sent/sent-vm.ts';
import { renderHostVm } from '#node/host-api/verbs/render-host-vm.ts';
import { checkRequired, readVmId } from '#node/host-api/sent/vm-conf.ts';

export async function createHostVm(
  parameters: SentMap,
  parts: HostParts,
  { signal }: { readonly signal: AbortSignal },
): Promise<HostAnswer> {
  const missing = checkRequired(parameters);
  if (missing !== undefined) return { status: missing };
  const requestedId = readVmId(parameters['vmId']);
  if (requestedId !== undefined && parts.hypervisor.get(requestedId) !== undefined)
    return refuseCall(HOST_CODES.exists, requestedId);
  const vm = parseSentVm(parameters);
  if ('errors' in vm) return refuseCall(HOST_CODES.createFailed, ...vm.errors);
  const { vmId } = vm.conf;
  return await parts.turns.run(vmId, async () => {
    if (parts.hypervisor.get(vmId) !== undefined) return refuseCall(HOST_CODES.exists, vmId);
    return await startHostVm(vm, parts, signal);
  });
}

async function startHostVm(vm: SentVm, parts: HostParts, signal: AbortSignal): Promise<HostAnswer> {
  const { conf, entries, sent } = vm;
  const { hypervisor, capabilities, images, vms } = parts;
  const { vmId, vmName } = conf;
  const { media, notes: missingNotes, errors: mediaErrors } = await findMedia(entries, images);
  const errors = [...mediaErrors];
  const kernel = await findKernel(sent, images, errors);
  if (errors.length > 0) return refuseCall(HOST_CODES.createFailed, ...errors);

  await vms.save({ vmId, vmName, sent, entries });
  const input = { ...buildDefineInput({ conf, entries, media, kernel }), capabilities };
  const outcome = await createDomain(
    input,
    {
      origin: 'host-api',
      check: (definition) => findMisplacedDevices(entries, definition),
      refine: (definition) => refineDefinition(definition, vm),
    },
    { hypervisor, signal },
  ).catch(async (error: unknown) => {
    await vms.remove(vmId);
    throw error;
  });
  if (outcome.is !== 'created') {
    await vms.remove(vmId);
    const why =
      outcome.is === 'refused' ? outcome.problems.map((it) => describeFieldError(it, entries)) : [outcome.message];
    return refuseCall(HOST_CODES.createFailed, ...why);
  }
  await refreshDevices(vmId, parts);
  const domain = hypervisor.get(vmId);
  const hostVm = domain && renderHostVm(domain, parts);
  const notes = limitNotes([
    ...vm.notes,
    ...noteAccelerator(sent, capabilities),
    ...missingNotes,
    ...input.placeNotes,
    ...outcome.omittedDevices,
    ...outcome.omittedFeatures,
    ...noteUnsentDevices(hypervisor.inspect(vmId)?.definition, entries),
  ]);
  return {
    status: HOST_CODES.done,
    ...(hostVm === undefined ? {} : { vmList: [hostVm] }),
    ...(notes.length === 0 ? {} : { notes }),
  };
}

/**
 * Returns a note for each device that the guest has although it was not sent. The root ports of a chipset do not count.
 */
function noteUnsentDevices(definition: DomainDefinition | undefined, entries: readonly DeviceEntry[]): string[] {
  const sent = new Set(entries.map(({ id }) => id));
  const rows = definition === undefined ? [] : toLearnedDevices(definition);
  return rows
    .filter((row) => !sent.has(row.id) && !isRootPort(row))
    .map(({ id, type, device }) => `the guest also has "${id}" (${type}/${device}): a device that was sent needs it`);
}
