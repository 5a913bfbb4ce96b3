import { createHash } from 'node:crypto'
import express, { type ErrorRequestHandler, type Express, type Request, type RequestHandler } from 'express'
import multer from 'multer'
import { idempotency, type Store } from 'once-per-key'
import { authenticate } from './merchant.js'

/** An application that takes a document with its fields. */
export function documentsApp({ store, addDocument }: { store: Store; addDocument: RequestHandler }): Express {
  const app = express()

  const upload = multer({ limits: { fileSize: 5_000_000, files: 1 } })
  const once = idempotency({
    store,
    scope: (req) => req.merchantId,
    // What the handler uses: the query, the fields, the file. Not the boundary, which is new on each try.
    fingerprint: ({ query, body, file }: Request) => ({
      query,
      fields: body,
      file: file && { name: file.originalname, type: file.mimetype, sha256: sha256(file.buffer) },
    }),
  })
  app.post('/documents', authenticate, upload.single('document'), once, addDocument)
  app.use(refuseUpload)
  return app
}

/** Too large, or too many: the upload was refused before it reached the middleware, and its key is as it was. */
const refuseUpload: ErrorRequestHandler = (error, _req, res, next) => {
  if (String(error.code).startsWith('LIMIT_')) res.sendStatus(413)
  else next(error)
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
