/** True in `npm run test:full`, in which tests run their longer form. */
export const FULL_RUN = process.env['SELFSAME_TEST_FULL'] === '1';
