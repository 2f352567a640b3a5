/**
 * POST serviceaccounts/NAME/token: a TokenRequest, answered with a token in its status. Nothing is stored: the token is
 * valid as long as its claims are (auth/service-accounts/authenticate-token.ts).
 */
import { bindToken, storedObject } from '#engine/auth/service-accounts/bind-token.ts';
import { API_AUDIENCES, POD_TOKEN_SECONDS } from '#engine/auth/service-accounts/claims.ts';
import { issueToken, type TokenRequestSpec } from '#engine/auth/service-accounts/issuer.ts';
import type { SigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import { credentialId, type Reference } from '#engine/auth/service-accounts/user.ts';
import type { Call, SubresourceHandlers } from '#engine/handlers/call.ts';
import { respondObject } from '#engine/handlers/respond.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { tokenRequestSchema, type tokenRequestSpec } from '#engine/registry/kinds/subresource-kinds.ts';
import { postedKind, readPosted } from '#engine/subresources/posted-kind.ts';
import { invalid } from '#kube/api-error.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';
import type { Infer } from '#kube/schema-dsl.ts';
import { timestamp } from '#lib/clock.ts';

const KIND = { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' };

const TOKEN_REQUEST = postedKind(KIND, tokenRequestSchema);

type Spec = Infer<typeof tokenRequestSpec>;

const MIN_SECONDS = 10 * 60;
const MAX_SECONDS = 2 ** 32;
/** Lifetime of a pod's default token (lifetimeOf). */
const EXTENDED_SECONDS = 365 * 24 * 60 * 60;

interface TokenRequestParts {
  readonly key: SigningKey;
}

export function tokenRequest({ key }: TokenRequestParts): SubresourceHandlers {
  return { create: (call) => create(call, key) };
}

async function create(call: Call, key: SigningKey): Promise<ApiResponse> {
  const { name, namespace } = call.route;
  const { object: request, call: own, warnings, attributes } = await readPosted(call, TOKEN_REQUEST);
  const account = completeRequest(call, request);
  await call.admission.validate(attributes);
  call.admission.guard(attributes);

  const wanted = specOf(request);
  const { boundObjectRef, audiences = [], expirationSeconds = 0 } = wanted;
  const bound = boundObjectRef === undefined ? {} : bindToken(call.store, { namespace, account: name }, boundObjectRef);
  const about = { namespace, account, audiences, ...bound };
  const nowMs = call.clock.now();
  // As in Kubernetes, a dry run also returns a token: there is nothing else to skip.
  const { token, id } = issueToken(key, { ...about, ...lifetimeOf(expirationSeconds, about) }, nowMs);
  call.notes.annotate('authentication.kubernetes.io/issued-credential-id', credentialId(id));
  const granted = {
    ...request,
    spec: { ...wanted, boundObjectRef: boundObjectRef ?? null },
    status: { token, expirationTimestamp: timestamp(nowMs + expirationSeconds * 1000) },
  };
  return respondObject(own, granted, { status: 201, warnings });
}

function specOf(request: KubeObject): Spec {
  return request['spec'] as Spec;
}

/** Sets the server's fields and rejects unsupported requests. Returns the account. */
function completeRequest(call: Call, request: KubeObject): Reference {
  const { name, namespace } = call.route;
  const { metadata } = request;
  if (metadata.name && metadata.name !== name) {
    const text = 'must match the service account name if specified';
    throw invalid(KIND, name, [invalidValue('metadata.name', metadata.name, text)]);
  }
  const account = storedObject(call.store, 'serviceaccounts', namespace, name);
  metadata.name = name;
  metadata.namespace = namespace;
  metadata.creationTimestamp = timestamp(call.clock.now());
  delete request['status'];
  const wanted = specOf(request);
  if ((wanted.audiences ?? []).length === 0) wanted.audiences = [...API_AUDIENCES];
  const errors = checkSeconds(wanted.expirationSeconds ?? 0);
  if (errors.length > 0) throw invalid(KIND, '', errors);
  return { name, uid: account.metadata.uid ?? '' };
}

function checkSeconds(seconds: number): FieldError[] {
  const invalid = (text: string) => [invalidValue('spec.expirationSeconds', seconds, text)];
  if (seconds < MIN_SECONDS) return invalid('may not specify a duration less than 10 minutes');
  return seconds > MAX_SECONDS ? invalid('may not specify a duration larger than 2^32 seconds') : [];
}

/**
 * Returns the requested lifetime. Only the default token of pods is valid longer, because many programs read it only
 * once; it still ends with its pod.
 */
function lifetimeOf(
  seconds: number,
  { pod, audiences }: Pick<TokenRequestSpec, 'pod' | 'audiences'>,
): Pick<TokenRequestSpec, 'lifetimeSeconds' | 'warnAfterSeconds'> {
  const extended =
    pod !== undefined && seconds === POD_TOKEN_SECONDS && audiences.every((one) => API_AUDIENCES.includes(one));
  return extended ? { lifetimeSeconds: EXTENDED_SECONDS, warnAfterSeconds: seconds } : { lifetimeSeconds: seconds };
}
