/** CEL expressions that several policies use. */
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';

/** CEL: the name of the user who sent the request. */
export const user = 'request.userInfo.username';

/** Returns a CEL string literal. The value must not contain single quotes. */
export const celText = (value: string) => `'${value}'`;
export const celList = (values: readonly string[]) => `[${values.map(celText).join(', ')}]`;

/** CEL: the annotation of the object, or ''. */
export const annotationOf = (object: string, annotation: string) =>
  `(has(${object}.metadata.annotations) && '${annotation}' in ${object}.metadata.annotations ? ${object}.metadata.annotations['${annotation}'] : '')`;

/** CEL: the protected VMs that need the object, or ''. */
export const markOf = (object: string) => annotationOf(object, PROTECTED_VMS_ANNOTATION);
