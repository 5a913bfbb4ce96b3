// As much of @types/multer as the recipe needs; an application installs those.
declare module 'multer' {
  export default function multer(options: { limits: { fileSize: number; files: number } }): {
    single(field: string): import('express').RequestHandler
  }
}

declare namespace Express {
  interface Request {
    file?: { fieldname: string; originalname: string; mimetype: string; buffer: Buffer }
  }
}
