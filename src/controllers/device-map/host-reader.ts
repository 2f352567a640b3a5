/**
 * How the controller learns what the guests of a node have: `list` of the host API, for the VMs that it names. The wire is
 * others' (plane/host-reader.ts); what comes from it is read here, once, and nothing of it is believed unseen.
 */
import { HOST_CODES, type HostDevice, type HostVm, type ListParameters } from '#api/host-api.ts';
import type { DeviceAddress, SpecParams } from '#api/learned-device.ts';
import { isRecord } from '#kube/meta.ts';

export interface HostReader {
  /** VMs that the node does not have are left out. Bounded in time; throws where there is no whole answer. */
  list(node: string, vmIds: readonly string[], options: { signal: AbortSignal }): Promise<readonly HostVm[]>;
}

/** Of one VM; more are no guest of ours. */
const MAX_DEVICES = 1024;
const MAX_ADDRESS_FIELDS = 16;
const MAX_ADDRESS_TEXT = 64;
const MAX_TEXT = 256;
const MAX_PARAMS_DEPTH = 4;
const MAX_PARAMS_TEXT = 16 * 1024;
const STATES: readonly HostVm['status'][] = ['Up', 'Paused', 'Down', 'WaitForLaunch', 'Powering down'];

export function listRequest(vmIds: readonly string[]): Buffer {
  const parameters: ListParameters = { fullStatus: true, vmList: vmIds };
  return Buffer.from(JSON.stringify(parameters));
}

/** Throws where it is none, or a refusal. VMs that make no sense are left out: nothing is learned of them. */
export function readListAnswer(bytes: Buffer): HostVm[] {
  const answer: unknown = JSON.parse(bytes.toString('utf8'));
  const status = isRecord(answer) ? answer['status'] : undefined;
  if (!isRecord(answer) || !isRecord(status)) throw new Error('the answer to list has no status');
  if (status['code'] !== HOST_CODES.done.code) {
    throw new Error(`list: ${Number(status['code'])} ${textOf(status['message'])}`);
  }
  const { vmList } = answer;
  if (!Array.isArray(vmList)) throw new Error('the answer to list has no vmList');
  return vmList.flatMap((vm: unknown) => hostVm(vm) ?? []);
}

function hostVm(told: unknown): HostVm | undefined {
  if (!isRecord(told) || !Array.isArray(told['devices']) || told['devices'].length > MAX_DEVICES) return undefined;
  const { vmId, hash, deviceRevision } = told;
  const status = STATES.find((state) => state === told['status']);
  if (typeof vmId !== 'string' || vmId === '' || status === undefined) return undefined;
  const devices = told['devices'].map(hostDevice);
  return {
    vmId,
    vmName: textOf(told['vmName']),
    status,
    emulatedMachine: textOf(told['emulatedMachine']),
    memSize: Number(told['memSize'] ?? 0),
    smp: textOf(told['smp']),
    uuid: textOf(told['uuid']),
    ...(typeof hash === 'string' && hash !== '' && hash.length <= MAX_TEXT ? { hash } : {}),
    ...(Number.isSafeInteger(deviceRevision) ? { deviceRevision: deviceRevision as number } : {}),
    devices,
  };
}

/** What cannot be read is empty, and left out by whoever makes rows of it. */
function hostDevice(told: unknown): HostDevice {
  if (!isRecord(told)) return { type: '', device: '' };
  const { name, bootOrder, managed, readonly } = told;
  const specParams = specParamsOf(told['specParams']);
  return {
    type: textOf(told['type']),
    device: textOf(told['device']),
    deviceId: textOf(told['deviceId']),
    address: addressOf(told['address']),
    ...(typeof name === 'string' && name.length <= MAX_TEXT ? { name } : {}),
    ...(typeof bootOrder === 'number' || typeof bootOrder === 'string' ? { bootOrder } : {}),
    ...(typeof managed === 'boolean' ? { managed } : {}),
    ...(typeof readonly === 'boolean' || typeof readonly === 'string' ? { readonly } : {}),
    ...(specParams === undefined ? {} : { specParams }),
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' && value.length <= MAX_TEXT ? value : '';
}

/** Empty: unknown, and so is what is no address at all. */
function addressOf(value: unknown): DeviceAddress | '' {
  if (!isRecord(value)) return '';
  const fields = Object.entries(value);
  if (fields.length > MAX_ADDRESS_FIELDS) return '';
  const isField = ([key, text]: [string, unknown]) =>
    key.length <= MAX_ADDRESS_TEXT && typeof text === 'string' && text.length <= MAX_ADDRESS_TEXT;
  return fields.every(isField) ? (Object.fromEntries(fields) as DeviceAddress) : '';
}

function specParamsOf(value: unknown): SpecParams | undefined {
  if (!isRecord(value) || !areParams(value, MAX_PARAMS_DEPTH)) return undefined;
  return JSON.stringify(value).length <= MAX_PARAMS_TEXT ? value : undefined;
}

function areParams(value: Record<string, unknown>, depth: number): value is SpecParams {
  if (depth === 0) return false;
  return Object.values(value).every(
    (child) => typeof child === 'string' || (isRecord(child) && areParams(child, depth - 1)),
  );
}
