/**
 * Keeps the firmware uuid, serial and machine type of a VirtualMachine that is replaced (PUT) by a manifest that omits
 * them. The manifest that created the VM often has none of them; replacing the VM by it must not make it another
 * machine. Patches and applies remove fields explicitly, so they are not changed: the policy of
 * operator/objects/firmware-policy.ts refuses those that remove uuid or serial, and empty values in any request.
 */
import type { ReviewRequest, PatchOperation } from '#admission/review.ts';
import { formatPointer } from '#kube/patches/json-pointer.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

interface KeptIdentity {
  readonly patch: readonly PatchOperation[];
  readonly warnings: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

const DOMAIN = ['spec', 'template', 'spec', 'domain'];

/** Returns the patch that carries over the omitted fields, and warnings that name them. */
export function keepIdentity({ isReplace, object, oldObject }: ReviewRequest): KeptIdentity {
  const domain = domainOf(object);
  const before = domainOf(oldObject);
  if (!isReplace || domain === undefined || before === undefined) return { patch: [], warnings: [] };
  const firmware = omittedFields(domain, before, 'firmware', ['uuid', 'serial']);
  const machine = omittedFields(domain, before, 'machine', ['type']);
  const name = oldObject?.metadata.name ?? '';
  return {
    patch: [...carryOver(domain, 'firmware', firmware), ...carryOver(domain, 'machine', machine)],
    warnings: [...firmwareWarnings(name, Object.keys(firmware)), ...machineWarnings(name, machine['type'])],
  };
}

/** Returns the fields of `part` that `before` has and `domain` omits, with their values in `before`. */
function omittedFields(domain: Fields, before: Fields, part: string, fields: readonly string[]): Fields {
  const [sent, stored] = [domain[part], before[part]];
  // Null, or a value of a wrong type, was sent explicitly: the policy or the schema decides about it.
  if (!isRecord(stored) || (sent !== undefined && !isRecord(sent))) return {};
  const omitted = fields.filter(
    (field) => isText(stored[field]) && (sent === undefined || !Object.hasOwn(sent, field)),
  );
  return Object.fromEntries(omitted.map((field) => [field, stored[field]]));
}

function carryOver(domain: Fields, part: string, omitted: Fields): PatchOperation[] {
  const fields = Object.entries(omitted);
  if (fields.length === 0) return [];
  const path = [...DOMAIN, part];
  if (domain[part] === undefined) return [{ op: 'add', path: formatPointer(path), value: omitted }];
  return fields.map(([field, value]) => ({ op: 'add', path: formatPointer([...path, field]), value }));
}

function firmwareWarnings(name: string, kept: readonly string[]): string[] {
  if (kept.length === 0) return [];
  const verb = kept.length === 1 ? 'was' : 'were';
  return [`the firmware ${kept.join(' and ')} of VirtualMachine "${name}" cannot be removed and ${verb} kept`];
}

function machineWarnings(name: string, type: unknown): string[] {
  if (type === undefined) return [];
  return [`the machine type of VirtualMachine "${name}" was kept: ${type as string}; set it to "" to remove it`];
}

function domainOf(vm: KubeObject | undefined): Fields | undefined {
  let value: unknown = vm;
  for (const field of DOMAIN) value = isRecord(value) ? value[field] : undefined;
  return isRecord(value) ? value : undefined;
}

const isText = (value: unknown) => typeof value === 'string' && value !== '';
