/**
 * Reads the devices of guests from a node with the verb `list` of the host API. plane/components/host-reader.ts sends the request;
 * this module builds it, and parses and validates the response.
 */
import { HOST_CODES, type HostDevice, type HostVm, type ListParameters } from '#api/host-api.ts';
import type { DeviceAddress, SpecParams } from '#api/devices/learned-device.ts';
import { isRecord } from '#kube/meta.ts';

export interface HostReader {
  /** Resolves to the VMs that the node has. Bounded in time; throws if the response is not complete. */
  list(node: string, vmIds: readonly string[], options: { signal: AbortSignal }): Promise<readonly HostVm[]>;
}

/** The maximum number of devices of one VM; our guests have fewer. */
const MAX_DEVICES = 1024;
const MAX_ADDRESS_FIELDS = 16;
const MAX_ADDRESS_TEXT = 64;
const MAX_TEXT = 256;
const MAX_PARAMS_DEPTH = 4;
const MAX_PARAMS_TEXT = 16 * 1024;
const STATES: readonly HostVm['status'][] = ['Up', 'Paused', 'Down', 'WaitForLaunch', 'Powering down'];

export function buildListRequest(vmIds: readonly string[]): Buffer {
  const parameters: ListParameters = { fullStatus: true, vmList: vmIds };
  return Buffer.from(JSON.stringify(parameters));
}

/** Parses a response; throws if it is malformed or an error of the host. Malformed VMs are ignored. */
export function parseListResponse(bytes: Buffer): HostVm[] {
  const response: unknown = JSON.parse(bytes.toString('utf8'));
  const status = isRecord(response) ? response['status'] : undefined;
  if (!isRecord(response) || !isRecord(status)) throw new Error('Cannot read the response to list: it has no status');
  if (status['code'] !== HOST_CODES.done.code) {
    throw new Error(`Cannot list the VMs of the node: ${Number(status['code'])} ${parseText(status['message'])}`);
  }
  const { vmList } = response;
  if (!Array.isArray(vmList)) throw new Error('Cannot read the response to list: it has no vmList');
  return vmList.flatMap((vm: unknown) => parseVm(vm) ?? []);
}

function parseVm(value: unknown): HostVm | undefined {
  if (!isRecord(value) || !Array.isArray(value['devices']) || value['devices'].length > MAX_DEVICES) return undefined;
  const { vmId, hash, deviceRevision } = value;
  const status = STATES.find((state) => state === value['status']);
  if (typeof vmId !== 'string' || vmId === '' || status === undefined) return undefined;
  const devices = value['devices'].map(parseDevice);
  return {
    vmId,
    vmName: parseText(value['vmName']),
    status,
    emulatedMachine: parseText(value['emulatedMachine']),
    memSize: Number(value['memSize'] ?? 0),
    smp: parseText(value['smp']),
    uuid: parseText(value['uuid']),
    ...(typeof hash === 'string' && hash !== '' && hash.length <= MAX_TEXT ? { hash } : {}),
    ...(Number.isSafeInteger(deviceRevision) ? { deviceRevision: deviceRevision as number } : {}),
    devices,
  };
}

/** Parses a device. Fields that cannot be read are empty; toLearnedDevice drops such a device. */
function parseDevice(value: unknown): HostDevice {
  if (!isRecord(value)) return { type: '', device: '' };
  const { name, bootOrder, managed, readonly } = value;
  const specParams = parseParams(value['specParams']);
  return {
    type: parseText(value['type']),
    device: parseText(value['device']),
    deviceId: parseText(value['deviceId']),
    address: parseAddress(value['address']),
    ...(typeof name === 'string' && name.length <= MAX_TEXT ? { name } : {}),
    ...(typeof bootOrder === 'number' || typeof bootOrder === 'string' ? { bootOrder } : {}),
    ...(typeof managed === 'boolean' ? { managed } : {}),
    ...(typeof readonly === 'boolean' || typeof readonly === 'string' ? { readonly } : {}),
    ...(specParams === undefined ? {} : { specParams }),
  };
}

function parseText(value: unknown): string {
  return typeof value === 'string' && value.length <= MAX_TEXT ? value : '';
}

/** Parses an address; empty means unknown, also for a malformed one. */
function parseAddress(value: unknown): DeviceAddress | '' {
  if (!isRecord(value)) return '';
  const fields = Object.entries(value);
  if (fields.length > MAX_ADDRESS_FIELDS) return '';
  const isField = ([key, text]: [string, unknown]) =>
    key.length <= MAX_ADDRESS_TEXT && typeof text === 'string' && text.length <= MAX_ADDRESS_TEXT;
  return fields.every(isField) ? (Object.fromEntries(fields) as DeviceAddress) : '';
}

function parseParams(value: unknown): SpecParams | undefined {
  if (!isRecord(value) || !areParams(value, MAX_PARAMS_DEPTH)) return undefined;
  return JSON.stringify(value).length <= MAX_PARAMS_TEXT ? value : undefined;
}

function areParams(value: Record<string, unknown>, depth: number): value is SpecParams {
  if (depth === 0) return false;
  return Object.values(value).every(
    (child) => typeof child === 'string' || (isRecord(child) && areParams(child, depth - 1)),
  );
}
