/** Writes kubeconfigs: where a server is, and the proof of who one is. Reading them is the client's business. */
import { stringify } from 'yaml';
import { writePrivateFile } from '#lib/private-file.ts';

const NAME = 'selfsame';

export interface KubeconfigOptions {
  readonly file: string;
  /** `https://127.0.0.1:6443`. */
  readonly server: string;
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
  const { server, caPem, user } = options;
  const base64 = (pem: string) => Buffer.from(pem, 'utf8').toString('base64');
  const proof =
    'tokenFile' in options
      ? { tokenFile: options.tokenFile }
      : { 'client-certificate-data': base64(options.certPem), 'client-key-data': base64(options.keyPem) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: NAME, cluster: { server, 'certificate-authority-data': base64(caPem) } }],
    users: [{ name: NAME, user: proof }],
    contexts: [{ name: NAME, context: { cluster: NAME, user: NAME, namespace: 'default' } }],
    'current-context': NAME,
    preferences: {},
  };
  // Folded lines would be valid YAML but no longer one value for grep and eyes.
  return `# Access as ${JSON.stringify(user)}.${'tokenFile' in options ? '' : ' Holds a private key.'}\n${stringify(config, { lineWidth: 0 })}`;
}
