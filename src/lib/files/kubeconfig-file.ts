/** Writes kubeconfigs: the address of a server and the credentials of a user. src/client/kubeconfig.ts reads them. */
import { isMap, isSeq, parseDocument, stringify, type YAMLMap } from 'yaml';
import { writePrivateFile } from '#lib/files/private-file.ts';

const NAME = 'selfsame';

interface KubeconfigOptions {
  readonly file: string;
  /** The URL, as in `https://127.0.0.1:6443`. */
  readonly server: string;
  /** The host name in the server's certificate, if it differs from the one in `server`. */
  readonly serverName?: string | undefined;
  readonly caPem: string;
  /** The user that the certificate authenticates. Only written as a comment at the top of the file. */
  readonly user: string;
  readonly certPem: string;
  readonly keyPem: string;
}

/** The content of a kubeconfig. The credentials are a certificate with its key, or the path of a file with a token. */
type KubeconfigContent = Omit<KubeconfigOptions, 'file' | 'certPem' | 'keyPem'> &
  (Pick<KubeconfigOptions, 'certPem' | 'keyPem'> | { readonly tokenFile: string });

/** Writes the file with mode 0600, because it contains a private key, and replaces an existing file atomically. */
export async function writeKubeconfig(options: KubeconfigOptions): Promise<void> {
  await writePrivateFile(options.file, kubeconfigText(options));
}

export function kubeconfigText(options: KubeconfigContent): string {
  const { server, serverName, caPem, user } = options;
  const serverNameField = serverName === undefined ? {} : { 'tls-server-name': serverName };
  const credentials =
    'tokenFile' in options
      ? { tokenFile: options.tokenFile }
      : { [CERTIFICATE]: base64(options.certPem), [KEY]: base64(options.keyPem) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: NAME, cluster: { server, ...serverNameField, 'certificate-authority-data': base64(caPem) } }],
    users: [{ name: NAME, user: credentials }],
    contexts: [{ name: NAME, context: { cluster: NAME, user: NAME, namespace: 'default' } }],
    'current-context': NAME,
    preferences: {},
  };
  // Without line folding, each value stays on one line and can be found with grep.
  return `# Access as ${JSON.stringify(user)}.${'tokenFile' in options ? '' : ' Holds a private key.'}\n${stringify(config, { lineWidth: 0 })}`;
}

/**
 * Replaces the certificate and key of the user of the current context and keeps everything else. Returns undefined if
 * the kubeconfig does not contain them itself, because then another program manages them.
 */
export function replaceClientCertificate(
  text: string,
  { certPem, keyPem }: Pick<KubeconfigOptions, 'certPem' | 'keyPem'>,
): string | undefined {
  const document = parseDocument(text);
  const context = findNamed(document.get('contexts'), document.get('current-context'), 'context');
  const user = findNamed(document.get('users'), context?.get('user'), 'user');
  if (user?.has(CERTIFICATE) !== true || !user.has(KEY)) return undefined;
  user.set(CERTIFICATE, base64(certPem));
  user.set(KEY, base64(keyPem));
  return document.toString({ lineWidth: 0 });
}

const CERTIFICATE = 'client-certificate-data';
const KEY = 'client-key-data';
const base64 = (pem: string) => Buffer.from(pem, 'utf8').toString('base64');

function findNamed(list: unknown, name: unknown, key: string): YAMLMap | undefined {
  const entries = isSeq(list) ? list.items.filter(isMap) : [];
  const found = entries.find((entry) => entry.get('name') === name)?.get(key);
  return isMap(found) ? found : undefined;
}
