/**
 * Serves expand-spec and expand-vm-spec: a VM with its instance type and preference expanded. Neither is supported, so
 * the VM is returned unchanged; a VM that refers to one is refused, as at its creation.
 */
import { KUBEVIRT_GROUP } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { Client } from '#client/client.ts';
import { badRequest, isApiError, methodNotAllowed, notFound, tooLarge } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';
import { jsonResponse, type SubresourceResponse, type SubresourceRequest } from '#subresources/http-types.ts';

/** The limit of a stored object. Parsing a longer text would take too long in one turn of the event loop. */
const MAX_VM_BYTES = 1.5 * 1024 * 1024;

interface ExpandTarget {
  readonly namespace: string;
  /** Undefined if the VM is in the body. */
  readonly name?: string;
}

/** Serves both resources; throws ApiError. */
export async function expandVm(
  { client }: { readonly client: Client },
  request: SubresourceRequest,
  { namespace, name }: ExpandTarget,
): Promise<SubresourceResponse> {
  if (request.method !== (name === undefined ? 'PUT' : 'GET')) throw methodNotAllowed();
  if (name === undefined) {
    const body = await request.body();
    if (body.length > MAX_VM_BYTES) throw tooLarge(`the body is larger than ${MAX_VM_BYTES} bytes`);
    return jsonResponse(200, parseVm(body.toString('utf8'), namespace));
  }
  try {
    const vm = await client.get(VIRTUAL_MACHINES, { namespace, name }, { signal: request.signal });
    return jsonResponse(200, withKind(vm));
  } catch (error) {
    // KubeVirt names the resource in the singular here.
    if (isApiError(error, 'NotFound')) throw notFound({ group: KUBEVIRT_GROUP, plural: 'virtualmachine' }, name);
    throw error;
  }
}

/** Parses the VM in a body; throws ApiError. */
export function parseVm(text: string, namespace: string): VirtualMachine {
  const vm = parseJson(text);
  if (!isRecord(vm) || !isRecord(vm['spec'])) throw badRequest('Object is not a valid VirtualMachine');
  const kind = vm['kind'] ?? 'VirtualMachine';
  if (kind !== 'VirtualMachine')
    throw badRequest(`Object is not a valid VirtualMachine: it is a ${JSON.stringify(kind)}`);
  const metadata = isRecord(vm['metadata']) ? vm['metadata'] : {};
  const own = metadata['namespace'];
  if (own !== undefined && own !== namespace) {
    throw badRequest(`VM namespace must be empty or ${JSON.stringify(namespace)}, not ${JSON.stringify(own)}`);
  }
  for (const field of ['instancetype', 'preference']) {
    if (vm['spec'][field] !== undefined) {
      throw badRequest(`spec.${field}: is not supported; write its values into spec.template.spec.domain`);
    }
  }
  return withKind(vm as unknown as VirtualMachine);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw badRequest(`Can not unmarshal Request body to struct, error: ${(cause as Error).message}`);
  }
}

const withKind = (vm: VirtualMachine): VirtualMachine => ({
  ...vm,
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
});
