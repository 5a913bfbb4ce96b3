import express from 'express'

// What the README shows of a body parser that comes before the webhook receiver. Run by a test.
export const keepsBytes = express.json({ verify: (req, _res, bytes) => Object.assign(req, { rawBody: bytes }) })
