/** Renders the group, version and kind of an object as Go does in kube-apiserver's messages: `apps/v1, Kind=Deployment`. */
import { parseApiVersion } from '#kube/meta.ts';

export function kindText({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): string {
  const { group, version } = parseApiVersion(apiVersion);
  return `${group}/${version}, Kind=${kind}`;
}
