/** Binds a token to an object, so that it ends with that object. Kubernetes' error messages. */
import type { TokenRequestSpec } from '#engine/auth/service-accounts/issuer.ts';
import type { Reference } from '#engine/auth/service-accounts/user.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Store } from '#engine/store/store.ts';
import { badRequest, conflict, notFound } from '#kube/api-error.ts';
import { isRecord, parseApiVersion, type KubeObject } from '#kube/meta.ts';

export interface BoundObjectReference {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly uid?: string;
}

type BoundClaims = Pick<TokenRequestSpec, 'pod' | 'secret' | 'node'>;

/** The account of the token. */
interface TokenAccount {
  readonly namespace: string;
  readonly account: string;
}

const BINDABLE: Readonly<Record<string, string>> = { Pod: 'pods', Secret: 'secrets', Node: 'nodes' };

/** Returns the claims about the object. Throws if it does not exist or does not match. */
export function bindToken(
  store: Store,
  { namespace, account }: TokenAccount,
  reference: BoundObjectReference,
): BoundClaims {
  const { kind = '', name = '', uid = '' } = reference;
  const { group, version } = parseApiVersion(reference.apiVersion ?? '');
  const plural = group === '' && Object.hasOwn(BINDABLE, kind) ? BINDABLE[kind] : undefined;
  if (plural === undefined) throw badRequest(`cannot bind token to object of type ${group}/${version}, Kind=${kind}`);
  const object = storedObject(store, plural, namespace, name);
  if (kind === 'Pod' && podSpecOf(object).serviceAccountName !== account) {
    const shown = JSON.stringify(account);
    throw badRequest(
      `cannot bind token for serviceaccount ${shown} to pod running with different serviceaccount name.`,
    );
  }
  const found = { name, uid: object.metadata.uid ?? '' };
  if (uid !== '' && uid !== found.uid) {
    const why = `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`;
    // Kubernetes names the kind here instead of the resource.
    throw conflict({ group, plural: kind }, name, why);
  }
  if (kind === 'Pod') return { pod: found, ...nodeOf(store, object) };
  return kind === 'Secret' ? { secret: found } : { node: found };
}

/** Reads durable state, because unacknowledged writes could still fail. Throws NotFound. */
export function storedObject(store: Store, plural: string, namespace: string, name: string): KubeObject {
  const entry = store.get(plural, plural === 'nodes' ? name : `${namespace}/${name}`);
  if (entry === undefined) throw notFound({ group: '', plural }, name);
  return decodeStored(entry.bytes);
}

/** Part of the token, so that a recipient can require it to come from that node. */
function nodeOf(store: Store, pod: KubeObject): { node?: Reference } {
  const { nodeName: name } = podSpecOf(pod);
  if (!name) return {};
  const entry = store.get('nodes', name);
  const uid = entry === undefined ? '' : (decodeStored(entry.bytes).metadata.uid ?? '');
  return { node: { name, uid } };
}

function podSpecOf(pod: KubeObject): { serviceAccountName?: string; nodeName?: string } {
  return isRecord(pod['spec']) ? pod['spec'] : {};
}
