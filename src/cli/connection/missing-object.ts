/** Says what exists instead of an object that was not found: its namespace, a similar name, or the names there. */
import { KUBEVIRT_GROUP, SUBRESOURCES_GROUP } from '#api/names.ts';
import { requestPathOf, type ApiConnection } from '#cli/connection/api-connection.ts';
import { ApiError, isApiError } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';
import { errorMessage } from '#lib/error-message.ts';
import { suggestion } from '#lib/text/nearest.ts';

type Api = Pick<ApiConnection, 'get'>;

/** The limit of names that are compared. */
const MAX_NAMES = 500;
const MAX_SHOWN = 10;
/** The words for kinds in messages. Others are called by their plural in the API. */
const KIND_WORDS: Readonly<Record<string, string>> = {
  virtualmachines: 'VMs',
  virtualmachineinstances: 'VMIs',
  persistentvolumeclaims: 'claims',
  virtualmachinesnapshots: 'snapshots',
};

interface MissingObject {
  /** The path of all objects of its kind in the namespace. */
  readonly collection: string;
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Returns the end of the message about an object that was not found, such as ` in namespace "lab"; the VMs there are a, b`,
 * or an empty string for other errors.
 */
export async function explainMissing(api: Api, error: unknown): Promise<string> {
  const cause = findApiError(error);
  if (cause === undefined || cause.reason !== 'NotFound' || !errorMessage(error).endsWith(cause.message)) return '';
  const missing = parseObjectPath(requestPathOf(cause) ?? '');
  return missing === undefined || missing.name !== cause.details?.name ? '' : await alternativesText(api, missing);
}

function findApiError(error: unknown): ApiError | undefined {
  if (error instanceof ApiError) return error;
  return error instanceof Error ? findApiError(error.cause) : undefined;
}

/** Returns the object that a request names. A verb of a VM belongs to the VM. */
export function parseObjectPath(path: string): MissingObject | undefined {
  const [, root, space = '', plural = '', last = ''] =
    /^(\/api\/[^/]+|\/apis\/[^/]+\/[^/]+)\/namespaces\/([^/]+)\/([^/]+)\/([^/?]+)/.exec(path) ?? [];
  if (root === undefined) return undefined;
  const group = root.replace(`/${SUBRESOURCES_GROUP}/`, `/${KUBEVIRT_GROUP}/`);
  const [namespace, name] = [decodeURIComponent(space), decodeURIComponent(last)];
  return { collection: `${group}/namespaces/${space}/${plural}`, plural, namespace, name };
}

/** Returns the end of a message that says "not found". */
export async function alternativesText(api: Api, missing: MissingObject): Promise<string> {
  const { plural, namespace, name } = missing;
  const where = ` in namespace ${JSON.stringify(namespace)}`;
  const names = await listNames(api, missing.collection);
  if (names === undefined) return where;
  // A verb of a VM that is not running reports that the instance was not found.
  const isStopped =
    plural === 'virtualmachines'
      ? names.includes(name)
      : plural === 'virtualmachineinstances' && (await isStoppedVm(api, missing));
  if (isStopped) {
    return `${where}; VM ${name} is not running: start it with virtctl start ${name}`;
  }
  const near = suggestion(name, names);
  if (near !== '') return where + near;
  const kind = KIND_WORDS[plural] ?? plural;
  if (names.length > 0) {
    const more = names.length > MAX_SHOWN ? ` and ${names.length - MAX_SHOWN} more` : '';
    return `${where}; the ${kind} there are ${names.slice(0, MAX_SHOWN).join(', ')}${more}`;
  }
  const why = (await isMissingNamespace(api, namespace)) ? 'the namespace does not exist' : `it has no ${kind}`;
  return `${where}; ${why}, choose another with --namespace`;
}

/** Returns undefined if the names cannot be read. */
async function listNames(api: Api, collection: string): Promise<string[] | undefined> {
  const response = await api.get(`${collection}?limit=${MAX_NAMES}`).catch(() => undefined);
  if (!isRecord(response) || !Array.isArray(response['items'])) return undefined;
  return response['items'].flatMap((item: unknown) =>
    isRecord(item) && isRecord(item['metadata']) ? [String(item['metadata']['name'])] : [],
  );
}

/** Reports whether a VM with the name exists, and thus does not run. */
async function isStoppedVm(api: Api, { collection, name }: MissingObject): Promise<boolean> {
  const vms = collection.replace(/virtualmachineinstances$/, 'virtualmachines');
  return await api.get(`${vms}/${encodeURIComponent(name)}`).then(
    () => true,
    () => false,
  );
}

async function isMissingNamespace(api: Api, namespace: string): Promise<boolean> {
  return await api.get(`/api/v1/namespaces/${encodeURIComponent(namespace)}`).then(
    () => false,
    (error: unknown) => isApiError(error, 'NotFound'),
  );
}
