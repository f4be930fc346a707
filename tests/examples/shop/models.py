from django.conf import settings
from django.db import models


class Order(models.Model):
    buyer = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    wish = models.TextField()
    render = models.OneToOneField("renders.RenderJob", null=True, on_delete=models.PROTECT)
    delivered_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.wish} for {self.buyer}"
