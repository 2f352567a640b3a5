/** Writes kubeconfigs: where a server is, and the proof of who one is. Reading them is the client's business. */
import { isMap, isSeq, parseDocument, stringify, type YAMLMap } from 'yaml';
import { writePrivateFile } from '#lib/private-file.ts';

const NAME = 'selfsame';

export interface KubeconfigOptions {
  readonly file: string;
  /** `https://127.0.0.1:6443`. */
  readonly server: string;
  /** The name that its certificate has, where that is not in `server`. */
  readonly serverName?: string | undefined;
  readonly caPem: string;
  /** The user as whom the certificate speaks; only told to the reader of the file. */
  readonly user: string;
  readonly certPem: string;
  readonly keyPem: string;
}

/** The proof: a certificate, or a token in a file, which whoever uses it renews there. */
export type KubeconfigText = Omit<KubeconfigOptions, 'file' | 'certPem' | 'keyPem'> &
  (Pick<KubeconfigOptions, 'certPem' | 'keyPem'> | { readonly tokenFile: string });

/** Mode 0600, replaced atomically: it holds a key. */
export async function writeKubeconfig(options: KubeconfigOptions): Promise<void> {
  await writePrivateFile(options.file, kubeconfigText(options));
}

export function kubeconfigText(options: KubeconfigText): string {
  const { server, serverName, caPem, user } = options;
  const named = serverName === undefined ? {} : { 'tls-server-name': serverName };
  const proof =
    'tokenFile' in options
      ? { tokenFile: options.tokenFile }
      : { [CERTIFICATE]: base64(options.certPem), [KEY]: base64(options.keyPem) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: NAME, cluster: { server, ...named, 'certificate-authority-data': base64(caPem) } }],
    users: [{ name: NAME, user: proof }],
    contexts: [{ name: NAME, context: { cluster: NAME, user: NAME, namespace: 'default' } }],
    'current-context': NAME,
    preferences: {},
  };
  // Folded lines would be valid YAML but no longer one value for grep and eyes.
  return `# Access as ${JSON.stringify(user)}.${'tokenFile' in options ? '' : ' Holds a private key.'}\n${stringify(config, { lineWidth: 0 })}`;
}

/**
 * The same kubeconfig with another certificate and key for whoever its current context speaks as; all else stays. Undefined
 * where these are not in the file itself: then somebody else keeps them.
 */
export function withClientCertificate(
  text: string,
  { certPem, keyPem }: Pick<KubeconfigOptions, 'certPem' | 'keyPem'>,
): string | undefined {
  const document = parseDocument(text);
  const context = namedIn(document.get('contexts'), document.get('current-context'), 'context');
  const user = namedIn(document.get('users'), context?.get('user'), 'user');
  if (user?.has(CERTIFICATE) !== true || !user.has(KEY)) return undefined;
  user.set(CERTIFICATE, base64(certPem));
  user.set(KEY, base64(keyPem));
  return document.toString({ lineWidth: 0 });
}

const CERTIFICATE = 'client-certificate-data';
const KEY = 'client-key-data';
const base64 = (pem: string) => Buffer.from(pem, 'utf8').toString('base64');

function namedIn(list: unknown, name: unknown, what: string): YAMLMap | undefined {
  const entries = isSeq(list) ? list.items.filter(isMap) : [];
  const found = entries.find((entry) => entry.get('name') === name)?.get(what);
  return isMap(found) ? found : undefined;
}
