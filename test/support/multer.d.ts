/** As much of it as the tests use. */
declare module 'multer' {
  export default function multer(): { none(): import('express').RequestHandler }
}
