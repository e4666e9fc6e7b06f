# SPDX-License-Identifier: Apache-2.0
"""ddddocr: the text of captchas, with both models, and where text is."""
import ddddocr
import pictures
import results

TEXTS = ["8a3k", "Q7xZ", "hello", "20974", "mWpE"]

captchas = [pictures.png(pictures.page([text], 36, 160)) for text in TEXTS]
ocr, old, detector = ddddocr.DdddOcr(show_ad=False), ddddocr.DdddOcr(show_ad=False, old=True), ddddocr.DdddOcr(det=True, show_ad=False)
results.save(text=[ocr.classification(captcha) for captcha in captchas], old=[old.classification(captcha) for captcha in captchas],
             boxes=[detector.detection(captcha) for captcha in captchas])
