/**
 * Secrets of type kubernetes.io/service-account-token. The controller writes the token, which is valid as long as the
 * Secret contains it, and deletes the Secret together with its service account.
 */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { objectKey } from '#client/object-key.ts';
import { encodeClaims } from '#engine/auth/service-accounts/claims.ts';
import { signToken } from '#engine/auth/service-accounts/issuer.ts';
import type { SigningKey } from '#engine/auth/service-accounts/signing-key.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { isApiError } from '#kube/api-error.ts';
import { SECRETS, type Secret } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { defineController, source, startController, type Source } from '#runtime/controller.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';
import { SERVICE_ACCOUNTS } from '#kube/cluster-kinds.ts';

const TOKEN_TYPE = 'kubernetes.io/service-account-token';
const NAME_KEY = 'kubernetes.io/service-account.name';
const UID_KEY = 'kubernetes.io/service-account.uid';

interface TokenSecretWorld {
  readonly secret: Stored<Secret>;
  /** The account that the Secret names, if its uid matches as well. */
  readonly account: Stored | undefined;
  readonly caPem: string;
  /** Signs a new token. Called only if the Secret has none. */
  makeToken(): string;
}

/** Decides the next step for one Secret. Pure except for the signature of a new token. */
export function decideTokenSecret({ secret, account, caPem, makeToken }: TokenSecretWorld): Plan {
  const { metadata, data = {} } = secret;
  if (metadata.deletionTimestamp !== undefined) return EMPTY_PLAN;
  const { name, namespace = '', uid } = metadata;
  const at = { type: SECRETS, name: { name, namespace }, uid };
  if (account === undefined) return { changes: [{ do: 'delete', ...at, why: 'its service account does not exist' }] };
  const ca = base64(caPem);
  const missing = {
    ...(data['ca.crt'] === ca ? {} : { 'ca.crt': ca }),
    ...(data['namespace'] ? {} : { namespace: base64(namespace) }),
    ...(data['token'] ? {} : { token: base64(makeToken()) }),
  };
  if (Object.keys(missing).length === 0 || secret['immutable'] === true) return EMPTY_PLAN;
  const annotations = { [NAME_KEY]: account.metadata.name, [UID_KEY]: account.metadata.uid };
  const body = { metadata: { annotations }, data: missing };
  return { changes: [{ do: 'patch', ...at, patch: { type: 'merge', body }, why: 'its token data is incomplete' }] };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

interface TokenSecretOptions {
  readonly key: SigningKey;
  readonly caPem: string;
}

export function tokenSecretController({ key, caPem }: TokenSecretOptions): EngineController {
  return {
    account: 'service-account-token-controller',
    start(parts) {
      const secrets = parts.informer(SECRETS);
      const accounts = parts.informer(SERVICE_ACCOUNTS);
      const definition = defineController<TokenSecretWorld>({
        name: 'service-account-token-controller',
        type: SECRETS,
        sources: [
          source(secrets, (secret) => (isTokenSecret(secret) ? [objectKey(secret)] : [])),
          secretsOfAccounts(accounts, secrets),
        ],
        async observe(at, { signal }) {
          const secret = secrets.get(at);
          if (secret === undefined || !isTokenSecret(secret)) return undefined;
          const account = await findAccount(secret, accounts, parts.client, signal);
          return { secret, account, caPem, makeToken: () => signTokenFor(key, secret, account!) };
        },
        decide: decideTokenSecret,
        subject: () => undefined,
      });
      return startController(definition, parts);
    },
  };
}

function isTokenSecret({ type }: Secret): boolean {
  return type === TOKEN_TYPE;
}

function signTokenFor(key: SigningKey, { metadata }: Stored<Secret>, { metadata: { name, uid } }: Stored): string {
  const { name: secretName, namespace = '' } = metadata;
  return signToken(key, encodeClaims({ type: 'secret', namespace, account: { name, uid }, secretName }));
}

function accountKey({ metadata }: Secret): string {
  return `${metadata.namespace}/${metadata.annotations?.[NAME_KEY] ?? ''}`;
}

/**
 * Returns the account of a Secret. The cache of accounts may lag behind that of Secrets, so the API is asked before an
 * account counts as missing and its Secret is deleted.
 */
async function findAccount(
  secret: Stored<Secret>,
  accounts: Informer<KubeObject>,
  client: Client,
  signal: AbortSignal,
): Promise<Stored | undefined> {
  const uid = secret.metadata.annotations?.[UID_KEY];
  const isNamed = (account: Stored | undefined) => account !== undefined && (!uid || uid === account.metadata.uid);
  const cached = accounts.get(accountKey(secret));
  if (isNamed(cached)) return cached;
  const { namespace = '', annotations } = secret.metadata;
  const name = annotations?.[NAME_KEY] ?? '';
  if (name === '') return undefined;
  try {
    const found = await client.get(SERVICE_ACCOUNTS, { namespace, name }, { signal });
    return isNamed(found) ? found : undefined;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** A source that enqueues the Secrets of an account when the account changes. */
function secretsOfAccounts(accounts: Informer<KubeObject>, secrets: Informer<Secret>): Source {
  const byAccount = new Map<string, Set<string>>();
  const { subscribe, ...rest } = source(accounts, (account) => byAccount.get(objectKey(account)) ?? []);
  return {
    ...rest,
    subscribe(add) {
      const unsubscribeSecrets = secrets.onChange((key, change) => {
        if (change.old !== undefined) removeSecretKey(byAccount, accountKey(change.old), key);
        if (change.new === undefined || !isTokenSecret(change.new)) return;
        const account = accountKey(change.new);
        byAccount.set(account, (byAccount.get(account) ?? new Set()).add(key));
      });
      const unsubscribeAccounts = subscribe(add);
      return () => {
        unsubscribeAccounts();
        unsubscribeSecrets();
      };
    },
  };
}

function removeSecretKey(byAccount: Map<string, Set<string>>, account: string, key: string): void {
  const keys = byAccount.get(account);
  if (keys === undefined) return;
  keys.delete(key);
  if (keys.size === 0) byAccount.delete(account);
}
