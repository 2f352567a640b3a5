/** The labels by which a Job identifies its pods, each under its old and its new name. */
export const UID_LABEL = 'batch.kubernetes.io/controller-uid';
export const NAME_LABEL = 'batch.kubernetes.io/job-name';

export function jobLabels(name: string, uid: string): Record<string, string> {
  return { 'controller-uid': uid, 'job-name': name, [UID_LABEL]: uid, [NAME_LABEL]: name };
}
