/** Writes the kubeconfig with which kubectl reaches this server. Reading kubeconfigs is the client's business. */
import { stringify } from 'yaml';
import { writePrivateFile } from '#engine/auth/private-file.ts';

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

/** Mode 0600, replaced atomically: it holds a key. */
export async function writeKubeconfig(options: KubeconfigOptions): Promise<void> {
  await writePrivateFile(options.file, kubeconfigText(options));
}

export function kubeconfigText({ server, caPem, user, certPem, keyPem }: Omit<KubeconfigOptions, 'file'>): string {
  const base64 = (pem: string) => Buffer.from(pem, 'utf8').toString('base64');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: NAME, cluster: { server, 'certificate-authority-data': base64(caPem) } }],
    users: [{ name: NAME, user: { 'client-certificate-data': base64(certPem), 'client-key-data': base64(keyPem) } }],
    contexts: [{ name: NAME, context: { cluster: NAME, user: NAME, namespace: 'default' } }],
    'current-context': NAME,
    preferences: {},
  };
  // Folded lines would be valid YAML but no longer one value for grep and eyes.
  return `# Access as ${JSON.stringify(user)}. Holds a private key.\n${stringify(config, { lineWidth: 0 })}`;
}
